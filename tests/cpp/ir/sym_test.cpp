// Owns: tests of symbolic integers: canonical forms, text, and random expressions against brute force evaluation.
#include "ir/sym.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>

#include "base/error.h"

namespace graphlift::ir {
namespace {

const Sym s0 = Sym::symbol(0), s1 = Sym::symbol(1), s2 = Sym::symbol(2);

TEST(Sym, ConstantsFollowPython) {
  struct {
    int64_t a, b, quotient, rest;
  } rows[] = {{7, 2, 3, 1}, {-7, 2, -4, 1}, {7, -2, -4, -1}, {-7, -2, 3, -1},
              {6, 3, 2, 0}, {-6, 3, -2, 0}, {0, 5, 0, 0}};
  for (auto [a, b, quotient, rest] : rows) {
    EXPECT_EQ(floordiv(Sym(a), Sym(b)).constant(), quotient) << a << " // " << b;
    EXPECT_EQ(mod(Sym(a), Sym(b)).constant(), rest) << a << " % " << b;
  }
  EXPECT_EQ(ceildiv(Sym(7), Sym(2)).constant(), 4);
  EXPECT_THROW(floordiv(s0, Sym(0)), InternalError);
}

TEST(Sym, SumsAndProductsAreCanonical) {
  EXPECT_EQ((s0 + s0).str(), "s0*2");
  EXPECT_EQ((s0 * 4 + 1).str(), "s0*4 + 1");
  EXPECT_EQ((Sym(1) - s0).str(), "-s0 + 1");
  EXPECT_EQ((s1 * s0 * 8 - s2 + 3).str(), "s0*s1*8 - s2 + 3");
  EXPECT_TRUE((s0 - s0).is_constant());
  EXPECT_TRUE((s0 * 0).is_constant());
  EXPECT_TRUE(((s0 + s1) * (s0 - s1)).same(s0 * s0 - s1 * s1));
  EXPECT_TRUE((s0 * (s1 + 2)).same(s1 * s0 + s0 + s0));
  EXPECT_FALSE((s0 + 1).same(s0));
}

TEST(Sym, QuotientsThatSimplify) {
  EXPECT_TRUE(floordiv(s0 * s1, s1).same(s0));
  EXPECT_TRUE(floordiv(s0 * 4, 4).same(s0));
  EXPECT_TRUE(floordiv(s0 * 4 + 3, 4).same(s0));
  EXPECT_TRUE(floordiv(s0 * 4 + 5, 4).same(s0 + 1));
  EXPECT_TRUE(floordiv(s0 * s1 + s1, s0 + 1).same(s1));
  EXPECT_TRUE(floordiv(s0 * s1 * 12, s1 * 4).same(s0 * 3));
  EXPECT_TRUE(floordiv(s0 * 6, s1 * 4).same(floordiv(s0 * 3, s1 * 2)));
  EXPECT_TRUE(floordiv(s0 * s2, s1 * s2).same(floordiv(s0, s1)));
  EXPECT_TRUE(floordiv(floordiv(s0, 2), 3).same(floordiv(s0, 6)));
  EXPECT_TRUE(floordiv(floordiv(s0, 2) + 1, 2).same(floordiv(s0 + 2, 4)));
  EXPECT_TRUE(floordiv(s0 * 2 + 1, 4).same(floordiv(s0, 2)));
  EXPECT_TRUE(floordiv(s0, -2).same(floordiv(-s0, 2)));
  EXPECT_TRUE(floordiv(s0 * s1 + s2, s1).same(s0 + floordiv(s2, s1)));
  // Convolution and pooling sizes.
  EXPECT_EQ(floordiv(s0 + 2 * 1 - 3, 2).str(), "(s0 + 1)//2 - 1");
  EXPECT_TRUE((floordiv(s0 * 2 + 2 - 3, 2) + 1).same(s0));
}

TEST(Sym, RestsThatSimplify) {
  EXPECT_TRUE(mod(s0 * 4, 4).same(0));
  EXPECT_TRUE(mod(s0 * 4 + 5, 4).same(1));
  EXPECT_TRUE(mod(s0 * s1, s1).same(0));
  EXPECT_TRUE(mod(s0 * s1 + s2, s1).same(mod(s2, s1)));
  EXPECT_TRUE(mod(mod(s0, 12), 4).same(mod(s0, 4)));
  EXPECT_TRUE(mod(s0 * 6, 4).same(mod(s0, 2) * 2));
  EXPECT_TRUE(mod(-s0, 4).same(mod(s0 * 3, 4)));
  EXPECT_TRUE(floordiv(mod(s0, s1), s1).same(0));
  EXPECT_TRUE(mod(s0, 1).same(0));
  EXPECT_TRUE(mod(s0, -1).same(0));
}

TEST(Sym, RoundedUpQuotientsHaveOneForm) {
  EXPECT_TRUE(ceildiv(s0, 4).same(floordiv(s0 + 3, 4)));
  EXPECT_TRUE((-floordiv(-s0, 4)).same(floordiv(s0 + 3, 4)));
  EXPECT_TRUE(ceildiv(s0 * 4, 4).same(s0));
}

TEST(Sym, MinAndMax) {
  EXPECT_TRUE(min(s0, s0 + 1).same(s0));
  EXPECT_TRUE(max(s0, s0 + 1).same(s0 + 1));
  EXPECT_TRUE(min(s0, s1).same(min(s1, s0)));
  EXPECT_TRUE(min(min(s0, s1), s2).same(min(s0, min(s2, s1))));
  EXPECT_TRUE(min(min(s0, 5), 3).same(min(s0, 3)));
  EXPECT_TRUE(min(s0, Sym(INT64_MAX)).same(s0));
  EXPECT_TRUE(max(s0, Sym(INT64_MIN)).same(s0));
}

TEST(Sym, Text) {
  EXPECT_EQ((floordiv(s0, 4) * 2).str(), "(s0//4)*2");
  EXPECT_EQ((-floordiv(s0, 4)).str(), "-(s0//4)");
  EXPECT_EQ(mod(s0 + 1, s1).str(), "(s0 + 1)%s1");
  EXPECT_EQ((min(s0, s1) * s2).str(), "s2*min(s0, s1)");
  EXPECT_EQ((s0 + INT64_MIN).str(), "s0 - 9223372036854775808");
  EXPECT_EQ((SymGuard{Relation::Le, s0 * 2, s1}).str(), "s0*2 <= s1");
}

TEST(Sym, CollectsEachSymbolOnce) {
  std::vector<SymbolId> symbols;
  (floordiv(s2 * s0, s1 + 1) + s0).collect(&symbols);
  std::sort(symbols.begin(), symbols.end());
  EXPECT_EQ(symbols, (std::vector<SymbolId>{0, 1, 2}));
}

TEST(Sym, OverflowIsAnInternalError) {
  EXPECT_THROW(Sym(INT64_MAX) + Sym(1), InternalError);
  EXPECT_THROW(s0 * INT64_MAX * 2, InternalError);
}

// An expression made twice: as Sym, and as plain integers for each assignment. `value` is empty where Python would
// raise.
struct Sample {
  Sym sym;
  std::vector<std::optional<int64_t>> values;
};

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {
    for (int i = 0; i < 40; ++i) {
      // Half of the assignments are sizes, half are any signs.
      int low = i % 2 ? 2 : -9;
      assignments_.push_back({pick(low, 17), pick(low, 17), pick(low, 17)});
    }
  }

  int64_t pick(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(engine_); }
  const std::vector<std::vector<int64_t>>& assignments() const { return assignments_; }

  Sample make(int depth) {
    if (depth == 0 || pick(0, 5) == 0) return leaf();
    Sample a = make(depth - 1), b = make(depth - 1);
    int operation = static_cast<int>(pick(0, 8));
    if (operation >= 3 && operation <= 6 && pick(0, 2)) b = constant(pick(0, 1) ? pick(1, 6) : pick(-6, -1));
    if (operation >= 3 && operation <= 6 && b.sym.same(0)) return a;
    Sample result{combine(operation, a.sym, b.sym), {}};
    for (size_t i = 0; i < assignments_.size(); ++i)
      result.values.push_back(a.values[i] && b.values[i] ? compute(operation, *a.values[i], *b.values[i])
                                                         : std::nullopt);
    return result;
  }

 private:
  static Sym combine(int operation, const Sym& a, const Sym& b) {
    switch (operation) {
      case 0:
        return a + b;
      case 1:
        return a - b;
      case 2:
        return a * b;
      case 3:
      case 4:
        return floordiv(a, b);
      case 5:
      case 6:
        return mod(a, b);
      case 7:
        return min(a, b);
      default:
        return max(a, b);
    }
  }

  static std::optional<int64_t> compute(int operation, int64_t a, int64_t b) {
    int64_t quotient = 0;
    if (operation >= 3 && operation <= 6) {
      if (b == 0) return std::nullopt;
      quotient = static_cast<int64_t>(std::floor(static_cast<long double>(a) / static_cast<long double>(b)));
    }
    switch (operation) {
      case 0:
        return a + b;
      case 1:
        return a - b;
      case 2:
        return a * b;
      case 3:
      case 4:
        return quotient;
      case 5:
      case 6:
        return a - quotient * b;
      case 7:
        return std::min(a, b);
      default:
        return std::max(a, b);
    }
  }

  Sample constant(int64_t value) {
    return {Sym(value), std::vector<std::optional<int64_t>>(assignments_.size(), value)};
  }

  Sample leaf() {
    if (pick(0, 2) == 0) return constant(pick(-6, 6));
    SymbolId id = static_cast<SymbolId>(pick(0, 2));
    Sample result{Sym::symbol(id), {}};
    for (const auto& assignment : assignments_) result.values.push_back(assignment[id]);
    return result;
  }

  std::mt19937 engine_;
  std::vector<std::vector<int64_t>> assignments_;
};

TEST(SymFuzz, AgreesWithBruteForce) {
  for (unsigned seed = 0; seed < 4000; ++seed) {
    Random random(seed);
    Sample sample = random.make(static_cast<int>(random.pick(1, 4)));
    for (size_t i = 0; i < sample.values.size(); ++i) {
      if (!sample.values[i]) continue;
      ASSERT_EQ(sample.sym.eval(random.assignments()[i]), *sample.values[i]) << seed << ": " << sample.sym.str();
    }
  }
}

TEST(SymFuzz, RingLawsGiveEqualForms) {
  for (unsigned seed = 0; seed < 1000; ++seed) {
    Random random(seed);
    Sym a = random.make(2).sym, b = random.make(2).sym, c = random.make(2).sym;
    ASSERT_TRUE(((a + b) * c).same(c * b + a * c)) << seed;
    ASSERT_TRUE((a - b + b).same(a)) << seed;
    if (!c.is_constant() || c.constant() != 0) {
      ASSERT_TRUE(floordiv(a * c, c).same(a)) << seed << ": (" << a.str() << ") * (" << c.str() << ")";
      ASSERT_TRUE(mod(a * c, c).same(0)) << seed;
    }
  }
}

}  // namespace
}  // namespace graphlift::ir
