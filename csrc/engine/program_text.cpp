// Owns: see program_text.h.
#include "engine/program_text.h"

#include <unordered_map>

#include "base/text.h"
#include "cpython/decode.h"

namespace graphlift::engine {

namespace {

std::string to_string(PyObject* object) {
  const char* text = object && PyUnicode_Check(object) ? PyUnicode_AsUTF8(object) : nullptr;
  if (!text) PyErr_Clear();
  return text ? text : "";
}

std::string attribute(PyObject* object, const char* name) {
  Ref value = Ref::steal(PyObject_GetAttrString(object, name));
  return to_string(value.get());
}

// "LOAD_FAST x" by the offset of the opcode, as dis words it.
using Words = std::unordered_map<long, std::string>;

Words words_of(PyObject* code) {
  Words words;
  Ref dis = Ref::steal(PyImport_ImportModule("dis"));
  Ref listed = dis ? Ref::steal(PyObject_CallMethod(dis.get(), "get_instructions", "O", code)) : Ref();
  Ref iterator = listed ? Ref::steal(PyObject_GetIter(listed.get())) : Ref();
  while (iterator) {
    Ref instruction = Ref::steal(PyIter_Next(iterator.get()));
    if (!instruction) break;
    Ref offset = Ref::steal(PyObject_GetAttrString(instruction.get(), "offset"));
    const std::string argument = attribute(instruction.get(), "argrepr");
    const long at = offset ? PyLong_AsLong(offset.get()) : -1;
    words[at] = attribute(instruction.get(), "opname") + (argument.empty() ? "" : " " + argument);
  }
  PyErr_Clear();
  return words;
}

}  // namespace

std::string line_text(const ir::SourceLine& where) {
  Ref linecache = Ref::steal(PyImport_ImportModule("linecache"));
  Ref line = linecache
                 ? Ref::steal(PyObject_CallMethod(linecache.get(), "getline", "si", where.file.c_str(), where.line))
                 : Ref();
  const std::string text = to_string(line.get());
  PyErr_Clear();
  const size_t first = text.find_first_not_of(" \t\n");
  return first == text.npos ? std::string() : text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::string instructions_text(const std::vector<capture::Evaluated>& evaluated) {
  std::unordered_map<PyObject*, Words> known;
  std::string out;
  const capture::Evaluated* before = nullptr;
  int last_line = 0;
  for (const capture::Evaluated& at : evaluated) {
    auto* code = reinterpret_cast<PyCodeObject*>(at.code.get());
    const std::string indent(2 * at.depth, ' ');
    if (!before || before->depth != at.depth || before->code.get() != at.code.get()) {
      out += cat(indent, to_string(code->co_qualname), "  # ", to_string(code->co_filename), "\n");
      last_line = 0;
    }
    before = &at;
    auto [words, added] = known.try_emplace(at.code.get());
    if (added) words->second = words_of(at.code.get());
    const long offset = 2L * cpython::decode(code).at_unit(at.unit).own_unit;
    const int line = PyCode_Addr2Line(code, static_cast<int>(offset));
    std::string number = line == last_line || line <= 0 ? std::string() : std::to_string(line);
    number.insert(0, number.size() < 6 ? 6 - number.size() : 0, ' ');
    last_line = line;
    out += cat(indent, number, "  ", words->second[offset], "\n");
  }
  return out;
}

}  // namespace graphlift::engine
