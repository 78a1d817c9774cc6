// Owns: see breaks.h.
#include "capture/breaks.h"

#include <iterator>

#include "base/error.h"
#include "base/once.h"
#include "capture/capture.h"

namespace graphlift::capture {
namespace {

constexpr BreakRow kRows[] = {
#define BREAK(id, sentence, hint) {#id, sentence, hint},
#include "capture/breaks.def"
#undef BREAK
};

// Not an Exception, so that a program's `except Exception` in C code (a __getattr__ fallback, say) lets it pass.
PyObject* break_exception() {
  static constinit Once<PyObject*> type;
  return type.get([] { return PyErr_NewException("graphlift.GraphBreak", PyExc_BaseException, nullptr); });
}

}  // namespace

const BreakRow* find_break(std::string_view id) {
  for (const BreakRow& row : kRows)
    if (id == row.id) return &row;
  return nullptr;
}

std::vector<BreakRow> break_table() { return {std::begin(kRows), std::end(kRows)}; }

std::string Break::sentence() const {
  std::string text = row->sentence;
  const size_t place = text.find("{}");
  if (place == std::string::npos) return detail.empty() ? text : text + " (" + detail + ")";
  return text.replace(place, 2, detail);
}

std::string Break::message() const {
  std::string text = sentence();
  if (*row->hint) text += std::string("\n  Hint: ") + row->hint;
  if (!stack.empty()) text += "\n  User code:";
  for (const ir::SourceLine& line : stack)
    text += "\n    File \"" + line.file + "\", line " + std::to_string(line.line) + ", in " + line.function;
  return text;
}

Ref break_here(Capture& capture, std::string_view id, std::string detail) {
  const BreakRow* row = find_break(id);
  GL_CHECK(row, "no row for the break " + std::string(id));
  if (!capture.pending) {
    capture.pending = Break{row, std::move(detail), capture.user_stack()};
    capture.left = innermost_exit(capture);
  }
  PyErr_Clear();
  PyObject* type = break_exception();
  if (type) PyErr_SetString(type, capture.pending->sentence().c_str());
  return Ref();
}

}  // namespace graphlift::capture
