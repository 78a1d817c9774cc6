// Owns: the backward analysis behind live_at(). Solved once per code object for all instructions, then kept with its
// decoding.
#include "cpython/liveness.h"

#include <algorithm>
#include <iterator>

#include "cpython/decode.h"

namespace graphlift::cpython {
namespace {

enum class Access { None, Read, Write };

Access access_of(Micro micro) {
  switch (micro) {
    case Micro::LoadFast:
    case Micro::LoadFastAndClear:  // the old value is put back by a later StoreFast
    case Micro::DeleteFast:        // unbound or not decides whether it raises
    case Micro::MakeCell:
    case Micro::LoadDeref:
    case Micro::StoreDeref:
    case Micro::DeleteDeref:
    case Micro::LoadFromDictOrDeref:
      return Access::Read;
    case Micro::StoreFast:
      return Access::Write;
    default:
      return Access::None;
  }
}

bool unite(LiveSet* into, const LiveSet& from) {
  bool changed = false;
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] && !(*into)[i]) {
      (*into)[i] = true;
      changed = true;
    }
  }
  return changed;
}

class Solver {
 public:
  Solver(PyCodeObject* code, const Decoded& decoded)
      : decoded_(decoded), slots_(static_cast<size_t>(code->co_nlocalsplus)), free_(code->co_nfreevars) {
    live_.assign(decoded.instructions.size(), LiveSet(slots_, false));
  }

  std::vector<LiveSet> solve() {
    bool changed = true;
    while (changed) {
      changed = false;
      for (size_t i = live_.size(); i-- > 0;) changed |= unite(&live_[i], before(i));
    }
    return std::move(live_);
  }

 private:
  size_t index(int unit) const { return static_cast<size_t>(decoded_.index_of_unit[static_cast<size_t>(unit)]); }

  LiveSet before(size_t i) const {
    const Instruction& instruction = decoded_.instructions[i];
    LiveSet live(slots_, false);
    if (falls_through(decoded_, instruction) && i + 1 < live_.size()) unite(&live, live_[i + 1]);
    for (int m = instruction.micro_end; m-- > instruction.micro_begin;) {
      const MicroOp& micro = decoded_.micros[static_cast<size_t>(m)];
      if (int target = jump_target(micro); target >= 0) unite(&live, live_[index(target)]);
      apply(micro, &live);
    }
    const HandlerEntry* handler = find_handler(decoded_.handlers, instruction.own_unit);
    if (handler) unite(&live, live_[index(handler->handler)]);
    return live;
  }

  void apply(const MicroOp& micro, LiveSet* live) const {
    const Access access = access_of(micro.micro);
    if (access != Access::None) (*live)[static_cast<size_t>(micro.arg)] = access == Access::Read;
    if (micro.micro == Micro::CopyFreeVars) {  // fills the slots of free variables
      for (size_t i = slots_ - static_cast<size_t>(free_); i < slots_; ++i) (*live)[i] = false;
    }
  }

  const Decoded& decoded_;
  size_t slots_;
  int free_;
  std::vector<LiveSet> live_;
};

}  // namespace

namespace {

template <size_t N>
bool is_one_of(PyObject* name, const char* const (&names)[N]) {
  return std::any_of(std::begin(names), std::end(names),
                     [&](const char* text) { return PyUnicode_CompareWithASCIIString(name, text) == 0; });
}

}  // namespace

bool looks_at_locals(PyCodeObject* code) {
  static constexpr const char* kFrames[] = {"_getframe", "currentframe", "f_locals"};
  static constexpr const char* kFunctions[] = {"locals", "vars", "dir", "eval", "exec"};
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(code->co_names); ++i)
    if (is_one_of(PyTuple_GET_ITEM(code->co_names, i), kFrames)) return true;
  for (const MicroOp& micro : decode(code).micros)
    if (micro.micro == Micro::LoadGlobal && is_one_of(PyTuple_GET_ITEM(code->co_names, micro.arg), kFunctions))
      return true;
  return false;
}

LiveSet live_at(PyCodeObject* code, int unit) {
  const Decoded& decoded = decode(code);
  const Instruction& instruction = decoded.at_unit(unit);
  const auto index = static_cast<size_t>(&instruction - decoded.instructions.data());
  if (decoded.live.empty()) decoded.live = Solver(code, decoded).solve();
  return decoded.live[index];
}

}  // namespace graphlift::cpython
