// Owns: writing LLVM IR text: typed values of any number of lanes, constants, instructions, masked memory access. Must
// not: know kernels or primitives.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/type.h"

namespace graphlift::cpu {

// A register or a constant. Lanes 1: a scalar. Bools are i1.
struct Reg {
  std::string text;
  ir::DType type = ir::DType::float32;
  int lanes = 1;
};

// What the machine offers; the same text is made for the same target.
struct Target {
  int vector_bytes = 16;  // of a native register
  // Vector functions of the process: "Sleef_sinf16_u10".
  std::set<std::string, std::less<>> functions;
};

class Code {
 public:
  explicit Code(const Target& target) : target_(target) {}
  const Target& target() const { return target_; }

  static std::string scalar_type(ir::DType type);
  static std::string type(ir::DType type, int lanes);
  static std::string type(const Reg& reg) { return type(reg.type, reg.lanes); }

  Reg real(double value, ir::DType type, int lanes);
  Reg integer(int64_t value, ir::DType type, int lanes);
  // A number of any type: `value` must be exact in it.
  Reg number(double value, ir::DType type, int lanes);
  Reg bits(uint64_t value, ir::DType type, int lanes);  // of an integer type

  // "fadd contract" and two operands of one type; the result has their type unless `result` says otherwise.
  Reg binary(std::string_view instruction, const Reg& a, const Reg& b);
  Reg compare(std::string_view predicate, const Reg& a, const Reg& b);  // "fcmp olt"
  Reg convert(std::string_view instruction, const Reg& a, ir::DType to);
  Reg select(const Reg& condition, const Reg& yes, const Reg& no);
  // llvm.<name>, overloaded on the operands' type.
  Reg intrinsic(const std::string& name, const std::vector<Reg>& args, std::string_view flags = "");
  Reg call(const std::string& function, const std::vector<Reg>& args);

  Reg splat(const Reg& scalar, int lanes);
  Reg part(const Reg& vector, int from, int lanes);
  Reg joined(const std::vector<Reg>& parts);
  // `call` of vectors of `native` lanes, one after another; lanes that are too few are padded.
  Reg by_registers(const std::vector<Reg>& args, int native,
                   const std::function<Reg(const std::vector<Reg>& args)>& call);
  Reg lane_numbers(int lanes, int64_t step = 1);  // i64 0, step, 2 * step, ...

  // Memory at `pointer` (text), of a storage dtype; 16-bit floats and bools are converted to what they are computed as.
  // `mask`: null for all lanes.
  Reg load(const std::string& pointer, ir::DType dtype, int lanes, const Reg* mask);
  void store(const std::string& pointer, ir::DType dtype, const Reg& value, const Reg* mask);
  Reg gather(const std::string& base, const Reg& offsets, ir::DType dtype, const Reg* mask);
  void scatter(const std::string& base, const Reg& offsets, ir::DType dtype, const Reg& value, const Reg* mask);
  std::string element(const std::string& base, ir::DType dtype, const Reg& offset);  // pointer to one element

  void line(const std::string& text) { body_ += "  " + text + "\n"; }
  void label(const std::string& name) { body_ += name + ":\n"; }
  std::string fresh(std::string_view prefix = "v") { return std::string(prefix) + std::to_string(next_++); }
  Reg define(ir::DType type, int lanes, const std::string& text);  // %v = text
  // Values that are defined from here on are forgotten by leave_block, behind which they do not exist.
  size_t enter_block() const { return known_order_.size(); }
  void leave_block(size_t mark);
  void declare(const std::string& declaration) { declarations_.insert(declaration); }

  std::string take_body() {
    leave_block(0);
    return std::exchange(body_, {});
  }
  std::string declarations() const;

 private:
  Reg pure(ir::DType type, int lanes, const std::string& text);  // as define; the same text is written once
  Reg from_storage(const Reg& raw, ir::DType dtype);
  Reg to_storage(const Reg& value, ir::DType dtype);
  Reg elements(const std::string& base, ir::DType dtype, const Reg& offsets);  // pointers, whatever the type says
  Reg repeated(const Reg& vector, int lanes);
  static ir::DType storage_type(ir::DType dtype);
  static Reg zero(ir::DType type, int lanes);
  std::string masked(const char* name, ir::DType type, int lanes, const char* pointers) const;
  std::string mask_text(const Reg* mask, int lanes);

  const Target& target_;
  std::string body_;
  std::set<std::string> declarations_;
  std::unordered_map<std::string, std::string> known_;  // register by text
  std::vector<std::string> known_order_;
  int next_ = 0;
};

}  // namespace graphlift::cpu
