"""Random numbers and clocks inside of compiled functions: every call draws and reads anew, as in eager."""

import datetime
import os
import random
import secrets
import time
import uuid
import warnings

import numpy
import pytest
import torch

import graphlift

POPULATION = [1, 2, 3, 4, 5, 6, 7]
# Functions of a module by name: arguments; None: it draws nothing.
RANDOM = {
    "betavariate": (1.0, 2.0),
    "binomialvariate": (5, 0.5),
    "choice": (POPULATION,),
    "choices": (POPULATION,),
    "expovariate": (1.0,),
    "gammavariate": (1.0, 2.0),
    "gauss": (0.0, 1.0),
    "getrandbits": (30,),
    "getstate": (),
    "lognormvariate": (0.0, 1.0),
    "normalvariate": (0.0, 1.0),
    "paretovariate": (1.0,),
    "randbytes": (5,),
    "randint": (0, 1000),
    "random": (),
    "randrange": (1000,),
    "sample": (POPULATION, 3),
    "seed": None,
    "setstate": None,
    "shuffle": None,
    "triangular": (0.0, 1.0, 0.5),
    "uniform": (0.0, 1.0),
    "vonmisesvariate": (0.0, 1.0),
    "weibullvariate": (1.0, 2.0),
}
NUMPY = {
    "beta": (1.0, 2.0),
    "binomial": (5, 0.5),
    "bytes": (4,),
    "chisquare": (2.0,),
    "choice": (7,),
    "default_rng": None,
    "dirichlet": ([1.0, 2.0],),
    "exponential": (),
    "f": (1.0, 2.0),
    "gamma": (1.0,),
    "geometric": (0.5,),
    "get_bit_generator": None,
    "get_state": (),
    "gumbel": (),
    "hypergeometric": (5, 5, 3),
    "laplace": (),
    "logistic": (),
    "lognormal": (),
    "logseries": (0.5,),
    "multinomial": (5, [0.5, 0.5]),
    "multivariate_normal": ([0.0, 0.0], [[1.0, 0.0], [0.0, 1.0]]),
    "negative_binomial": (5, 0.5),
    "noncentral_chisquare": (2.0, 1.0),
    "noncentral_f": (2.0, 3.0, 1.0),
    "normal": (),
    "pareto": (1.0,),
    "permutation": (7,),
    "poisson": (),
    "power": (1.0,),
    "rand": (),
    "randint": (1000,),
    "randn": (),
    "random": (),
    "random_integers": (1000,),
    "random_sample": (),
    "ranf": (),
    "rayleigh": (),
    "sample": (),
    "seed": None,
    "set_bit_generator": None,
    "set_state": None,
    "shuffle": None,
    "standard_cauchy": (),
    "standard_exponential": (),
    "standard_gamma": (1.0,),
    "standard_normal": (),
    "standard_t": (2.0,),
    "test": None,
    "triangular": (0.0, 0.5, 1.0),
    "uniform": (),
    "vonmises": (0.0, 1.0),
    "wald": (1.0, 1.0),
    "weibull": (1.0,),
    "zipf": (2.0,),
}
MODULES = {random: RANDOM, numpy.random: NUMPY}


def functions_of(module):
    for name in dir(module):
        value = getattr(module, name)
        if not name.startswith("_") and callable(value) and not isinstance(value, type):
            yield name


def results(draw, wrap, calls=3):
    """What `draw` gives between two tensor operations, call by call."""

    def program(x):
        y = x * 2
        value = draw()
        return y + 1, value

    program = wrap(program)
    return [program(torch.ones(2))[1] for _ in range(calls)]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_the_tables_are_complete(module):
    assert set(functions_of(module)) <= set(MODULES[module])


@pytest.mark.parametrize(
    "module, name",
    [(m, name) for m in MODULES for name in functions_of(m) if MODULES[m].get(name) is not None],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_random_numbers_are_drawn_at_each_call(module, name):
    def draw():
        return getattr(module, name)(*MODULES[module][name])

    seen = []
    for wrap in (lambda f: f, graphlift.compile):
        random.seed(3)
        numpy.random.seed(3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            seen.append(results(draw, wrap))
    assert repr(seen[0]) == repr(seen[1])
    assert graphlift.graph_count() >= 1 and graphlift.counters()["hits"] >= 1


CLOCKS = [
    time.time,
    time.time_ns,
    time.monotonic,
    time.monotonic_ns,
    time.perf_counter,
    time.perf_counter_ns,
    lambda: time.clock_gettime(0),
    lambda: time.clock_gettime_ns(0),
    datetime.datetime.now,
    datetime.datetime.utcnow,
    lambda: datetime.datetime.now(datetime.UTC),
    lambda: datetime.datetime.today(),
    lambda: type("Mine", (datetime.datetime,), {}).now(),
    uuid.uuid4,
    uuid.uuid1,
    secrets.token_hex,
    lambda: os.urandom(8),
    lambda: secrets.randbelow(10**9),
    lambda: random.SystemRandom().random(),
    lambda: random.Random().random(),
    lambda: numpy.random.default_rng().random(),
]


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.filterwarnings("ignore:datetime:DeprecationWarning")
def test_clocks_go_on(clock):
    def read():
        time.sleep(0.001)
        return clock()

    seen = results(read, graphlift.compile)
    assert len({str(value) for value in seen}) == len(seen), seen


@pytest.mark.parametrize("clock", [time.localtime, time.gmtime, time.ctime, time.asctime, lambda: time.strftime("%S")])
def test_the_second_changes(clock):
    seen = results(lambda: clock(), graphlift.compile)
    now = clock()
    for _ in range(200):
        if clock() != now:
            break
        time.sleep(0.01)
    seen += [results(clock, lambda f: f)[0]]
    assert seen[-1] != now


def test_the_date_is_asked_for():
    results(datetime.date.today, graphlift.compile)
    assert any("today" in reason for reason in graphlift.counters()["graph_break"])


GENERATORS = {
    "numpy.random.default_rng": (lambda: numpy.random.default_rng(3), ("random", "normal", "standard_normal")),
    "numpy.random.RandomState": (lambda: numpy.random.RandomState(3), ("random", "normal", "rand")),
    "random.Random": (lambda: random.Random(3), ("random", "normalvariate", "getstate")),
    "torch.Generator": (lambda: torch.Generator().manual_seed(3), ("initial_seed", "seed")),
}


@pytest.mark.parametrize("name", GENERATORS)
def test_generators_from_outside_are_drawn_from(name):
    make, methods = GENERATORS[name]
    for method in methods:
        if method == "seed":
            continue
        outside = [make(), make()]
        want = results(lambda: getattr(outside[0], method)(), lambda f: f)
        assert repr(results(lambda: getattr(outside[1], method)(), graphlift.compile)) == repr(want)
