"""One program per row of csrc/capture/breaks.def that meets this break in the line marked `# break`.

PROGRAMS maps a row's id to the program and what makes its arguments.
"""

import array
import re
import sys
import zlib

import numpy
import torch

import graphlift

PROGRAMS = {}


def breaks(row, make=lambda: ()):
    """Enters a program of a tensor and what `make` gives."""

    def enter(program):
        PROGRAMS[row] = (program, lambda: (torch.tensor([1.0, 2.0, 3.0]), *make()))
        return program

    return enter


@breaks("unknown_callable")
def calls_another_extension(x):
    y = x * 2
    number = zlib.crc32(b"graph")  # break
    return y + number % 7


@torch.library.custom_op("graphlift_broken::doubled", mutates_args=())
def doubled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@torch.library.custom_op("graphlift_broken::tripled", mutates_args=())
def tripled(x: torch.Tensor) -> torch.Tensor:
    return x * 3


@tripled.register_fake
def refuses(x):
    raise NotImplementedError("not yet")


@torch.library.custom_op("graphlift_broken::rank", mutates_args=())
def rank(x: torch.Tensor) -> int:
    return x.dim()


@breaks("no_fake")
def calls_an_operator_without_a_fake(x):
    y = x * 2
    y = doubled(y)  # break
    return y + 1


@breaks("fake_failed")
def calls_an_operator_with_a_wrong_fake(x):
    y = x * 2
    y = tripled(y)  # break
    return y + 1


@breaks("opaque_operator")
def calls_an_operator_that_gives_a_number(x):
    y = x * 2
    number = rank(y)  # break
    return y + number


@breaks("data_dependent_item")
def reads_an_item(x):
    y = x * 2
    number = y.sum().item()  # break
    return y + number


@breaks("data_dependent")
def selects_by_a_mask(x):
    y = x * 2
    kept = y[y > 3]  # break
    return kept + 1


@breaks("data_dependent_branch")
def branches(x):
    y = x * 2
    if y.sum() > 0:  # break
        return y + 1
    return y - 1


@breaks("control_flow")
def takes_a_branch_of_torch_cond(x):
    y = x * 2
    y = torch.cond(y.sum() > 1e9, lambda a: a.sin(), lambda a: a.cos(), (y,))  # break
    return y + 1


@breaks("data_dependent_number")
def makes_a_number(x):
    y = x * 2
    number = int(y[0])  # break
    return y + number


@breaks("numpy_of_tensor")
def goes_through_numpy(x):
    y = x * 2
    there = y.numpy(force=True)  # break
    return y + float(there[0])


@breaks("tensor_text")
def writes_a_tensor(x):
    y = x * 2
    text = f"it is {y}"  # break
    return y + len(text)


@breaks("unsupported_tensor", lambda: (torch.eye(3).to_sparse(),))
def takes_a_sparse_tensor(x, sparse):
    y = x * 2
    dense = sparse.to_dense()  # break
    return dense @ y


@breaks("unsupported_attribute", lambda: (array.array("d", [1.0, 2.0]),))
def reads_an_attribute_of_an_array(x, numbers):
    y = x * 2
    size = numbers.itemsize  # break
    return y + size


class Shared:
    steps = 0


@breaks("unsupported_store")
def assigns_to_a_class(x):
    y = x * 2
    Shared.steps = 3  # break
    return y + 1


@breaks("unsupported_item", lambda: (array.array("d", [1.0, 2.0]),))
def reads_an_item_of_an_array(x, numbers):
    y = x * 2
    number = numbers[1]  # break
    return y + number


@breaks("unsupported_operator", lambda: (array.array("d", [1.0, 2.0]),))
def adds_arrays(x, numbers):
    y = x * 2
    both = numbers + numbers  # break
    return y + len(both)


@breaks("unsupported_iteration", lambda: (array.array("d", [1.0, 2.0]),))
def walks_an_array(x, numbers):
    y = x * 2
    for number in numbers:  # break
        y = y + number
    return y


@breaks("unsupported_truth", lambda: (array.array("d", [1.0, 2.0]),))
def asks_whether_an_array_is_empty(x, numbers):
    y = x * 2
    if numbers:  # break
        y = y + 1
    return y


def without_colorsys():
    sys.modules.pop("colorsys", None)
    return ()


@breaks("unsupported_import", without_colorsys)
def imports(x):
    y = x * 2
    import colorsys  # break

    return y + colorsys.rgb_to_hsv(1, 0, 0)[1]


class Key:
    def __hash__(self):
        return 1

    def __eq__(self, other):
        return isinstance(other, Key)


@breaks("unguardable_key", lambda: ({Key(): 2.0}, Key()))
def looks_up_an_object(x, table, key):
    y = x * 2
    number = table[key]  # break
    return y + number


@breaks("nested_outside", lambda: ([1, 2],))
def compares_a_list_in_a_list(x, items):
    y = x * 2
    same = [items] == [[1, 2]]  # break
    return y + same


def negative(number):
    return -number


@breaks("unknown_function")
def substitutes_by_a_function(x):
    y = x * 2
    text = WORD.sub(louder, "ab cd")  # break
    return y + len(text)


WORD = re.compile("b")


def louder(match):
    return match.group(0) + "!"


def numbers_from_one():
    number = 0
    while True:
        number += 1
        yield number


@breaks("unrebuildable", lambda: ([],))
def leaves_a_generator_behind(x, box):
    y = x * 2
    box.append(number for number in (1, 2, 3))
    return y + 1  # break


@breaks("loop_boundary", lambda: (iter([torch.ones(3), torch.ones(3)]),))
def walks_an_iterator(x, tensors):
    y = x * 2
    for tensor in tensors:  # break
        y = y + tensor
    return y


@breaks("filling")
def goes_on_with_a_set(x):
    y = x * 2
    parts = {*(1, 2), y.sum().item(), *(3, 4)}  # break
    return y + len(parts)


@breaks("budget")
def counts_far(x):
    y = x * 2
    number = len([k + 1 for k in range(90000)])  # break
    return y + number


@breaks("raises")
def raises(x):
    y = x * 2
    number = {"a": 1}["b"]  # break
    return y + number


@breaks("user_requested")
def asks_for_a_break(x):
    y = x * 2
    graphlift.graph_break("here")  # break
    return y + 1


@graphlift.disable
def left_out(x):
    return x + 1


@breaks("disabled")
def calls_what_is_disabled(x):
    y = x * 2
    z = left_out(y)  # break
    return z * 3


@breaks("generator_argument", lambda: (iter([torch.Generator().manual_seed(k) for k in (3, 4)]),))
def draws_from_another_generator_each_round(x, sources):
    y = x * 2
    for source in sources:
        y = y + torch.rand(3, generator=source)  # break
    return y


@breaks("inner_generator", lambda: (numbers_from_one(),))
def resumes_a_generator(x, numbers):
    y = x * 2
    number = next(numbers)  # break
    return y + number


async def asynchronous():
    return 3


@breaks("coroutine")
def calls_an_async_function(x):
    y = x * 2
    waiting = asynchronous()  # break
    waiting.close()
    return y + 1


@breaks("requires_grad_change")
def asks_for_gradients(x):
    y = x * 2
    x.requires_grad_()  # break
    return y + x


def parameter_with_hook_on_its_node():
    w = torch.ones(3, requires_grad=True)
    w.node = w.view_as(w).grad_fn.next_functions[0][0]
    w.node.register_hook(lambda *_: None)
    return (w,)


@breaks("backward_call", parameter_with_hook_on_its_node)
def goes_backward_to_a_hook(x, w):
    y = (x * w).sum()
    y.backward()  # break
    return y.detach() + 1


@breaks("hook_acts", lambda: (torch.ones(3, requires_grad=True), []))
def has_a_hook_that_notes_gradients(x, w, notes):
    y = x * w
    y.register_hook(lambda gradient: notes.append(1))  # break
    return (y + 1).sum()


def doubles_and_tells(x, told):
    try:
        yield x * 2
    finally:
        told.append("closed")


@breaks("acts_at_death", lambda: ([],))
def lets_go_what_acts(x, told):
    doubled = doubles_and_tells(x, told)
    y = next(doubled)
    del doubled  # break
    told.append("after")
    return y + len(told)


@breaks("tensor_attribute_store")
def replaces_the_data(x):
    y = x * 2
    x.data = torch.zeros(3, dtype=torch.float64)  # break
    return y + x


def prints(x):
    print("checkpointed")
    return x.sin()


@breaks("checkpoint_acts")
def prints_in_a_checkpoint(x):
    y = x * 2
    y = torch.utils.checkpoint.checkpoint(prints, y, use_reentrant=False)  # break
    return y + 1


def asks(x):
    return x.sin() if torch.is_grad_enabled() else x.cos()


@breaks("array_arithmetic", lambda: (numpy.ones(3, dtype=numpy.float32),))
def computes_on_an_array(x, array):
    y = x * 2
    array *= 2  # break
    return y + torch.from_numpy(array)


@breaks("checkpoint_asks")
def asks_in_a_checkpoint(x):
    y = x * 2
    y = torch.utils.checkpoint.checkpoint(asks, y.requires_grad_(), use_reentrant=True)  # break
    return y + 1


@breaks("branches")
def draws_in_a_branch(x):
    y = x * 2
    y = torch.cond(y.sum() > 1e9, lambda a: a + torch.rand_like(a), lambda a: a * 1, (y,))  # break
    return y + 1


@breaks("ambient_change")
def changes_the_default(x):
    y = x * 2
    torch._C._set_grad_enabled(bool(y.dim()), **{})
    torch._C.set_autocast_enabled("cpu", enabled=False)  # break
    return y + 1


def memory_in_two_places():
    memory = torch.ones(4)
    return memory[:3], memory[1:]


@breaks("internal_recording", memory_in_two_places)
def writes_what_another_shares(x, first, second):
    first.add_(1)
    y = x * 2
    y = y + first * second
    return y + 1  # break


class Nameless:
    """Its text has its address."""


@breaks("address_text", lambda: (Nameless(),))
def makes_a_text_with_an_address(x, thing):
    y = x * 2
    text = f"{thing}"  # break
    return y + text.count("Nameless")


@breaks("set_order", lambda: (Nameless(), Nameless()))
def reads_a_set_in_the_order_of_addresses(x, a, b):
    y = x * 2
    pairs = list({(a, 1), (b, 2)})  # break
    return y + len(pairs)
