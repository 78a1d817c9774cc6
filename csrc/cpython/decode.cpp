// Owns: decoding. Works on co_code, in which CPython has already replaced specialized and instrumented forms by their
// base opcode, and caches by zeros.
#include "cpython/decode.h"

#include <string>

#include "base/error.h"
#include "base/ref.h"

namespace graphlift::cpython {
namespace {

constexpr int kCache = 0;

class Decoder {
 public:
  Decoder(const unsigned char* bytes, int units, Decoded* out) : bytes_(bytes), units_(units), out_(*out) {
    extended_ = opcode_number("EXTENDED_ARG");
    kw_names_ = opcode_number("KW_NAMES");
    precall_ = opcode_number("PRECALL");
  }

  void run() {
    out_.index_of_unit.assign(static_cast<size_t>(units_), -1);
    int unit = 0;
    while (unit < units_) unit = instruction(unit);
  }

 private:
  int opcode(int unit) const { return bytes_[2 * unit]; }

  // Decodes the instruction at `unit`; returns the unit behind it.
  int instruction(int unit) {
    const int first_micro = static_cast<int>(out_.micros.size());
    Instruction made{unit, unit, unit, 0, first_micro, first_micro, nullptr};
    int joined;
    do {
      joined = one_opcode(made.next, &made);
    } while (joined && made.next < units_);
    made.micro_end = static_cast<int>(out_.micros.size());
    const int index = static_cast<int>(out_.instructions.size());
    for (int at = made.unit; at <= made.own_unit; ++at) out_.index_of_unit[static_cast<size_t>(at)] = index;
    out_.instructions.push_back(made);
    return made.next;
  }

  // One opcode with its prefixes and caches, appended to `made`. True: the next opcode is part of the same instruction.
  bool one_opcode(int unit, Instruction* made) {
    unsigned arg = bytes_[2 * unit + 1];
    while (opcode(unit) == extended_ && unit + 1 < units_) {
      ++unit;
      arg = (arg << 8) | bytes_[2 * unit + 1];
    }
    const int number = opcode(unit);
    const bool in_group = made->row != nullptr;  // behind KW_NAMES
    made->own_unit = unit;
    made->arg = static_cast<int>(arg);
    made->row = row_of(number);
    made->next = unit + 1;
    while (made->next < units_ && opcode(made->next) == kCache) ++made->next;
    if (!made->row) {
      out_.runnable = false;
      return false;
    }
    for (int i = 0; i < made->row->use_count; ++i) {
      const MicroUse& use = made->row->uses[i];
      out_.micros.push_back({use.micro(made->arg, made->next), use.argument(made->arg, made->next)});
    }
    return number == kw_names_ || (in_group && number == precall_);
  }

  const unsigned char* bytes_;
  int units_;
  Decoded& out_;
  int extended_, kw_names_, precall_;
};

std::unique_ptr<Decoded> decode_now(PyCodeObject* code) {
  Ref bytes = Ref::steal(PyCode_GetCode(code));
  GL_CHECK(bytes && PyBytes_Check(bytes.get()), "a code object without co_code");
  auto decoded = std::make_unique<Decoded>();
  const auto* raw = reinterpret_cast<const unsigned char*>(PyBytes_AS_STRING(bytes.get()));
  Decoder(raw, static_cast<int>(PyBytes_GET_SIZE(bytes.get()) / 2), decoded.get()).run();
  PyObject* table = code->co_exceptiontable;
  decoded->handlers = parse_exception_table(
      {reinterpret_cast<const unsigned char*>(PyBytes_AS_STRING(table)), static_cast<size_t>(PyBytes_GET_SIZE(table))});
  if (code->co_flags & (CO_COROUTINE | CO_ASYNC_GENERATOR)) decoded->runnable = false;
  return decoded;
}

void forget(void* extra) { delete static_cast<Decoded*>(extra); }

Py_ssize_t extra_index() {
#if PY_VERSION_HEX >= 0x030c0000
  static const Py_ssize_t index = PyUnstable_Eval_RequestCodeExtraIndex(forget);
#else
  static const Py_ssize_t index = _PyEval_RequestCodeExtraIndex(forget);
#endif
  GL_CHECK(index >= 0, "no free slot for data on code objects");
  return index;
}

}  // namespace

const Instruction& Decoded::at_unit(int unit) const {
  const bool inside = unit >= 0 && static_cast<size_t>(unit) < index_of_unit.size();
  const int index = inside ? index_of_unit[static_cast<size_t>(unit)] : -1;
  GL_CHECK(index >= 0, "no instruction at unit " + std::to_string(unit));
  return instructions[static_cast<size_t>(index)];
}

const Decoded& decode(PyCodeObject* code) {
  PyObject* object = reinterpret_cast<PyObject*>(code);
  void* extra = nullptr;
#if PY_VERSION_HEX >= 0x030c0000
  const bool known = PyUnstable_Code_GetExtra(object, extra_index(), &extra) == 0;
#else
  const bool known = _PyCode_GetExtra(object, extra_index(), &extra) == 0;
#endif
  if (known && extra) return *static_cast<Decoded*>(extra);
  SavedError saved;
  std::unique_ptr<Decoded> decoded = decode_now(code);
#if PY_VERSION_HEX >= 0x030c0000
  const bool kept = PyUnstable_Code_SetExtra(object, extra_index(), decoded.get()) == 0;
#else
  const bool kept = _PyCode_SetExtra(object, extra_index(), decoded.get()) == 0;
#endif
  GL_CHECK(kept, "could not keep the decoded form of a code object");
  return *decoded.release();
}

int jump_target(const MicroOp& micro) {
  switch (micro.micro) {
    case Micro::Jump:
    case Micro::PopJumpIfTrue:
    case Micro::PopJumpIfFalse:
    case Micro::PopJumpIfNone:
    case Micro::PopJumpIfNotNone:
    case Micro::JumpIfTrueOrPop:
    case Micro::JumpIfFalseOrPop:
    case Micro::ForIter:
    case Micro::ForIterKeep:
    case Micro::Send:
    case Micro::SendDrop:
      return micro.arg;
    default:
      return -1;
  }
}

bool falls_through(const Decoded& decoded, const Instruction& instruction) {
  if (instruction.micro_begin == instruction.micro_end) return false;
  const Micro last = decoded.micros[static_cast<size_t>(instruction.micro_end - 1)].micro;
  return last != Micro::Jump && last != Micro::Return && last != Micro::Raise && last != Micro::Reraise;
}

}  // namespace graphlift::cpython
