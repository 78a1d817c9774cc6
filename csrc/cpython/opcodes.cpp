// Owns: the rows of opcodes.def, and their numbers in the running interpreter (asked once from the module `opcode`).
#include "cpython/opcodes.h"

#include <array>
#include <map>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/ref.h"
#include "cpython/hook.h"

namespace graphlift::cpython {
namespace {

#define U(micro_name, expression)                                                               \
  MicroUse {                                                                                    \
    [](int, int) { return Micro::micro_name; },                                                 \
        []([[maybe_unused]] int arg, [[maybe_unused]] int next) -> int { return (expression); } \
  }
// One of two micro-ops, by a condition on the argument.
#define V(condition, micro_if, micro_else, expression)                                               \
  MicroUse {                                                                                         \
    []([[maybe_unused]] int arg, int) { return (condition) ? Micro::micro_if : Micro::micro_else; }, \
        []([[maybe_unused]] int arg, [[maybe_unused]] int next) -> int { return (expression); }      \
  }

template <typename... Uses>
constexpr OpRow row(std::string_view name, int since, int until, Uses... uses) {
  return {name, since, until, {uses...}, static_cast<int>(sizeof...(uses))};
}

#define OP(name, since, until, ...) row(#name, since, until, __VA_ARGS__),
constexpr OpRow kRows[] = {
#include "cpython/opcodes.def"
};
#undef OP
#undef U
#undef V

struct Numbers {
  std::map<std::string, int, std::less<>> by_name;
  std::array<const OpRow*, 256> rows{};
};

void fill(Numbers* numbers) {
  SavedError saved;
  Ref module = Ref::steal(PyImport_ImportModule("opcode"));
  Ref opmap = module ? Ref::steal(PyObject_GetAttrString(module.get(), "opmap")) : Ref();
  GL_CHECK(opmap && PyDict_Check(opmap.get()), "the module `opcode` has no opmap");
  PyObject *key, *value;
  Py_ssize_t position = 0;
  while (PyDict_Next(opmap.get(), &position, &key, &value)) {
    numbers->by_name[PyUnicode_AsUTF8(key)] = static_cast<int>(PyLong_AsLong(value));
  }
  for (const OpRow& row : kRows) {
    if (row.since > kVersion || row.until < kVersion) continue;
    auto it = numbers->by_name.find(row.name);
    if (it != numbers->by_name.end() && it->second < 256) numbers->rows[static_cast<size_t>(it->second)] = &row;
  }
}

// Not a static with an initializer: the import runs Python, which may let another thread in here.
const Numbers& numbers() {
  static const Numbers* made = nullptr;
  if (!made) {
    HookScope paused(nullptr);
    auto fresh = std::make_unique<Numbers>();
    fill(fresh.get());
    if (!made) made = fresh.release();
  }
  return *made;
}

}  // namespace

std::string_view name(Micro micro) {
  static constexpr std::string_view names[] = {
#define MICRO(name, effect, jump_effect) #name,
#include "cpython/micro_ops.def"
#undef MICRO
  };
  return names[static_cast<size_t>(micro)];
}

int stack_effect(Micro micro, [[maybe_unused]] int arg, bool jump) {
  switch (micro) {
#define MICRO(name, effect, jump_effect) \
  case Micro::name:                      \
    return jump ? (jump_effect) : (effect);
#include "cpython/micro_ops.def"
#undef MICRO
  }
  return 0;
}

std::span<const OpRow> opcode_rows() { return kRows; }

const OpRow* row_of(int opcode) {
  return opcode >= 0 && opcode < 256 ? numbers().rows[static_cast<size_t>(opcode)] : nullptr;
}

int opcode_number(std::string_view name) {
  auto it = numbers().by_name.find(name);
  return it == numbers().by_name.end() ? -1 : it->second;
}

}  // namespace graphlift::cpython
