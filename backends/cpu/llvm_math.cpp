// Owns: float32 functions as polynomials, for any number of lanes: exp and log after Cephes, tanh and erf as rational
// functions. Each is within a few units in the last place; infinities and NaN come out as libm's.
#include <cmath>

#include "backends/cpu/llvm_primitives.h"

namespace graphlift::cpu {
namespace {

using ir::DType;

// Arithmetic on float32 registers.
class Floats {
 public:
  Floats(Code& code, int lanes) : code_(code), lanes_(lanes) {}
  Reg c(double value) { return code_.real(value, DType::float32, lanes_); }
  Reg add(const Reg& a, const Reg& b) { return code_.binary("fadd", a, b); }
  Reg sub(const Reg& a, const Reg& b) { return code_.binary("fsub", a, b); }
  Reg mul(const Reg& a, const Reg& b) { return code_.binary("fmul", a, b); }
  Reg div(const Reg& a, const Reg& b) { return code_.binary("fdiv", a, b); }
  Reg fma(const Reg& a, const Reg& b, const Reg& c) { return code_.intrinsic("fmuladd", {a, b, c}); }
  Reg at_most(const Reg& x, double limit) { return code_.select(code_.compare("fcmp ogt", x, c(limit)), c(limit), x); }
  Reg at_least(const Reg& x, double limit) { return code_.select(code_.compare("fcmp olt", x, c(limit)), c(limit), x); }
  Reg polynomial(const Reg& x, std::initializer_list<double> highest_first) {
    Reg sum;
    for (const double coefficient : highest_first)
      sum = sum.text.empty() ? c(coefficient) : fma(sum, x, c(coefficient));
    return sum;
  }
  Reg as_int(const Reg& x) { return code_.convert("bitcast", x, DType::int32); }
  Reg as_float(const Reg& x) { return code_.convert("bitcast", x, DType::float32); }
  Reg ints(int64_t value) { return code_.integer(value, DType::int32, lanes_); }

 private:
  Code& code_;
  int lanes_;
};

Reg scaled_avx512(Code& code, const Reg& y, const Reg& n) {
  constexpr int kNative = 16;
  const std::string function = "@llvm.x86.avx512.mask.scalef.ps.512", vector = Code::type(DType::float32, kNative);
  code.declare("declare " + vector + " " + function + "(" + vector + ", " + vector + ", " + vector + ", i16, i32)");
  return code.by_registers({y, n}, kNative, [&](const std::vector<Reg>& it) {
    const std::string first = vector + " " + it[0].text;
    return code.define(DType::float32, kNative,
                       "call " + vector + " " + function + "(" + first + ", " + vector + " " + it[1].text + ", " +
                           first + ", i16 -1, i32 4)");
  });
}

// y * 2^n, rounded once: `n` as a float, and as an integer. Two factors reach the denormals.
Reg scaled(Code& code, const Reg& y, const Reg& n, const Reg& whole) {
  if (y.lanes > 1 && code.target().vector_bytes == 64) return scaled_avx512(code, y, n);
  Floats f(code, y.lanes);
  auto power = [&](const Reg& exponent) {
    return f.as_float(code.binary("shl", code.binary("add", exponent, f.ints(127)), f.ints(23)));
  };
  const Reg half = code.binary("ashr", whole, f.ints(1));
  return f.mul(f.mul(y, power(half)), power(code.binary("sub", whole, half)));
}

}  // namespace

// x = n ln 2 + r. Adding and taking away 1.5 * 2^23 rounds to a whole number, which is also in the low bits; NaN goes
// through the arithmetic.
Reg emit_exp(Code& code, const Reg& argument) {
  Floats f(code, argument.lanes);
  const Reg x = f.at_least(f.at_most(argument, 89), -104);
  const Reg magic = f.c(12582912.0);
  const Reg shifted = f.fma(x, f.c(1.44269504088896341), magic);
  const Reg n = f.sub(shifted, magic);
  Reg r = f.fma(n, f.c(-0.693359375), x);
  r = f.fma(n, f.c(2.12194440e-4), r);
  // Of the least relative error with two coefficients of 1: 0.03 units in the last place.
  const Reg y =
      f.polynomial(r, {1.3814610279e-3, 8.3687111474e-3, 4.1668387494e-2, 1.6666520679e-1, 4.9999993451e-1, 1.0, 1.0});
  return scaled(code, y, n, code.binary("sub", f.as_int(shifted), f.ints(0x4b400000)));
}

Reg emit_log(Code& code, const Reg& x) {
  Floats f(code, x.lanes);
  const Reg tiny = code.compare("fcmp olt", x, f.c(1.17549435e-38));
  const Reg scaled = code.select(tiny, f.mul(x, f.c(8388608)), x);
  const Reg raw = f.as_int(scaled);
  const Reg biased = code.binary("sub", code.binary("lshr", raw, f.ints(23)), f.ints(126));
  Reg e = code.convert("sitofp", biased, DType::float32);
  e = code.select(tiny, f.sub(e, f.c(23)), e);
  Reg m = f.as_float(code.binary("or", code.binary("and", raw, f.ints(0x7fffff)), f.ints(0x3f000000)));
  const Reg low = code.compare("fcmp olt", m, f.c(0.707106781186547524));
  e = code.select(low, f.sub(e, f.c(1)), e);
  m = f.sub(code.select(low, f.add(m, m), m), f.c(1));
  const Reg z = f.mul(m, m);
  const Reg p = f.polynomial(m, {7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
                                 -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1});
  Reg y = f.mul(f.mul(p, m), z);
  y = f.fma(e, f.c(-2.12194440e-4), y);
  y = f.fma(z, f.c(-0.5), y);
  Reg result = f.fma(e, f.c(0.693359375), f.add(m, y));
  result = code.select(code.compare("fcmp oeq", x, f.c(INFINITY)), x, result);
  result = code.select(code.compare("fcmp oeq", x, f.c(0)), f.c(-INFINITY), result);
  return code.select(code.compare("fcmp ult", x, f.c(0)), f.c(NAN), result);
}

Reg emit_tanh(Code& code, const Reg& argument) {
  Floats f(code, argument.lanes);
  const Reg x = f.at_least(f.at_most(argument, 9), -9);
  const Reg z = f.mul(x, x);
  const Reg p =
      f.polynomial(z, {-2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08,
                       1.48572235717979e-05, 6.37261928875436e-04, 4.89352455891786e-03});
  const Reg q =
      f.polynomial(z, {1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03});
  const Reg small = code.compare("fcmp olt", code.intrinsic("fabs", {argument}), f.c(0.0004));
  return code.select(small, argument, f.div(f.mul(x, p), q));
}

Reg emit_sigmoid(Code& code, const Reg& x) {
  Floats f(code, x.lanes);
  const Reg negative = code.define(DType::float32, x.lanes, "fneg " + Code::type(x) + " " + x.text);
  return f.div(f.c(1), f.add(f.c(1), emit_exp(code, negative)));
}

Reg emit_erf(Code& code, const Reg& argument) {
  Floats f(code, argument.lanes);
  const Reg x = f.at_least(f.at_most(argument, 4), -4);
  const Reg z = f.mul(x, x);
  const Reg p =
      f.polynomial(z, {-2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05,
                       -7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02});
  const Reg q = f.polynomial(z, {-1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03,
                                 -7.37332916720468e-03, -1.42647390514189e-02});
  return f.mul(x, f.div(p, q));  // of denormals the product with p would be none
}

}  // namespace graphlift::cpu
