// Owns: see checks.h.
#include "guards/checks.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "cpython/dict_version.h"
#include "cpython/raw_dict.h"
#include "guards/constant.h"

namespace graphlift::guards {

namespace {

using cpython::Answer;

bool type_is(const Check& check, PyObject* object) {
  return check.identity.is(reinterpret_cast<PyObject*>(Py_TYPE(object)));
}
bool is(const Check& check, PyObject* object) { return check.identity.is(object); }
bool is_not(const Check& check, PyObject* object) { return !check.identity.is(object); }
bool equals(const Check& check, PyObject* object) { return constants_equal(object, check.constant.get()); }

// -1: has no length by storage.
Py_ssize_t raw_length(PyObject* object) {
  if (PyTuple_Check(object) || PyList_Check(object)) return Py_SIZE(object);
  if (PyDict_Check(object)) return reinterpret_cast<PyDictObject*>(object)->ma_used;
  return PyAnySet_Check(object) ? PySet_GET_SIZE(object) : -1;
}

bool length(const Check& check, PyObject* object) { return raw_length(object) == check.number; }

Answer key_in(const Check& check, PyObject* object) {
  PyObject* value = nullptr;
  if (!PyDict_Check(object)) return Answer::Unknown;
  return cpython::raw_dict_lookup(object, check.constant.get(), check.hash, &value);
}

bool has_key(const Check& check, PyObject* object) { return key_in(check, object) == Answer::Yes; }
bool lacks_key(const Check& check, PyObject* object) { return key_in(check, object) == Answer::No; }

bool same_key(PyObject* a, PyObject* b) { return a == b || constants_equal(a, b); }

bool raw_keys_are(PyObject* dict, PyObject* keys) {
  const Py_ssize_t size = PyTuple_GET_SIZE(keys);
  if (reinterpret_cast<PyDictObject*>(dict)->ma_used != size) return false;
  Py_ssize_t position = 0, i = 0;
  PyObject* key;
  while (PyDict_Next(dict, &position, &key, nullptr))
    if (i == size || !same_key(key, PyTuple_GET_ITEM(keys, i++))) return false;
  return i == size;
}

// An OrderedDict keeps an order of its own, which move_to_end changes alone. Its iterator is C code, and allocates.
bool ordered_keys_are(PyObject* dict, PyObject* keys) {
  const Py_ssize_t size = PyTuple_GET_SIZE(keys);
  if (reinterpret_cast<PyDictObject*>(dict)->ma_used != size) return false;
  Py_ssize_t position = 0;
  PyObject* key;
  while (PyDict_Next(dict, &position, &key,
                     nullptr))  // the iterator hashes keys: only those that are known to be harmless
    if (!is_guardable_constant(key) && Py_TYPE(key)->tp_hash != PyBaseObject_Type.tp_hash) return false;
  Ref iterator = Ref::steal(PyODict_Type.tp_iter(dict));
  bool same = static_cast<bool>(iterator);
  for (Py_ssize_t i = 0; same && i < size; ++i) {
    Ref next = Ref::steal(Py_TYPE(iterator.get())->tp_iternext(iterator.get()));
    same = next && same_key(next.get(), PyTuple_GET_ITEM(keys, i));
  }
  if (PyErr_Occurred()) PyErr_Clear();
  return same;
}

bool keys_are(const Check& check, PyObject* object) {
  if (!PyDict_Check(object)) return false;
  const bool ordered = PyODict_Check(object) && PyTuple_GET_SIZE(check.constant.get()) > 1;
  return ordered ? ordered_keys_are(object, check.constant.get()) : raw_keys_are(object, check.constant.get());
}

bool contains(const Check& check, Py_hash_t hash, PyObject* element) {
  auto same = std::lower_bound(check.details->elements.begin(), check.details->elements.end(), hash,
                               [](const auto& row, Py_hash_t wanted) { return row.first < wanted; });
  for (; same != check.details->elements.end() && same->first == hash; ++same)
    if (constants_equal(same->second, element)) return true;
  return false;
}

bool set_is(const Check& check, PyObject* object) {
  if (!PyAnySet_Check(object) || PySet_GET_SIZE(object) != static_cast<Py_ssize_t>(check.details->elements.size()))
    return false;
  Py_ssize_t position = 0;
  PyObject* element;
  Py_hash_t hash;
  while (cpython::raw_set_next(object, &position, &element, &hash))
    if (!contains(check, hash, element)) return false;
  return true;
}

bool never(const Check&, PyObject*) { return false; }  // Missing was asked of an object: it exists
bool cell_empty(const Check&, PyObject* object) { return PyCell_Check(object) && !PyCell_GET(object); }
bool later(const Check&, PyObject*) { return true; }  // SameAs and NotSameAs run after the walk

bool type_version(const Check& check, PyObject* object) {
  return PyType_Check(object) && check.number != 0 &&
         cpython::type_version(reinterpret_cast<PyTypeObject*>(object)) == static_cast<uint64_t>(check.number);
}

enum class Operand : uint8_t { None, Type, Object, Constant, Key, Keys, Set };

struct Row {
  GuardKind kind;
  RunCheck run;
  Operand operand;
  const char* failure;  // {} is the origin, [] the operand, ! what was found
  Applies applies = Applies::Object;
};

constexpr Row kRows[] = {
    {GuardKind::TypeIs, type_is, Operand::Type, "type({}) is !, not []"},
    {GuardKind::Is, is, Operand::Object, "{} is !, not []"},
    {GuardKind::IsNot, is_not, Operand::Object, "{} is []"},
    {GuardKind::Equals, equals, Operand::Constant, "{} is !, not []"},
    {GuardKind::Length, length, Operand::None, "len({}) is !, not []"},
    {GuardKind::HasKey, has_key, Operand::Key, "[] is not in {}"},
    {GuardKind::LacksKey, lacks_key, Operand::Key, "[] is in {}"},
    {GuardKind::KeysAre, keys_are, Operand::Keys, "list({}) is !, not []"},
    {GuardKind::SetIs, set_is, Operand::Set, "{} is not []"},
    {GuardKind::Missing, never, Operand::None, "{} exists", Applies::Nothing},
    {GuardKind::CellEmpty, cell_empty, Operand::None, "{} is not empty"},
    {GuardKind::SameAs, later, Operand::None, "{} is not []", Applies::TwoNodes},
    {GuardKind::NotSameAs, later, Operand::None, "{} is []", Applies::TwoNodes},
    {GuardKind::TypeVersion, type_version, Operand::None, "type {} changed"},
};

struct Words {
  int cost;
  const char* text;
};
constexpr Words kWords[] = {
#define GUARD(name, cost, text) {cost, text},
    GRAPHLIFT_GUARDS(GUARD)
#undef GUARD
};
static_assert(std::size(kRows) == std::size(kWords), "a row for each guard kind");

const Row& row_of(GuardKind kind) {
  const Row& row = kRows[static_cast<size_t>(kind)];
  GL_CHECK(row.kind == kind, "the rows follow the order of GRAPHLIFT_GUARDS");
  return row;
}

bool suits(Operand operand, PyObject* object) {
  switch (operand) {
    case Operand::None:
      return true;
    case Operand::Type:
      return object && PyType_Check(object);
    case Operand::Constant:
      return object && is_guardable_constant(object);
    case Operand::Keys:
      return object && PyTuple_CheckExact(object);
    case Operand::Set:
      return object && PyAnySet_Check(object);
    default:
      return object != nullptr;
  }
}

void take_elements(PyObject* set, Check* check) {
  Py_ssize_t position = 0;
  PyObject* element;
  Py_hash_t hash;
  // What is no constant is told by its identity.
  while (cpython::raw_set_next(set, &position, &element, &hash)) check->details->elements.emplace_back(hash, element);
  std::sort(check->details->elements.begin(), check->details->elements.end());
}

std::string keys_text(PyObject* object) {
  if (!PyDict_Check(object)) return describe(object);
  std::vector<PyObject*> keys;
  Py_ssize_t position = 0;
  for (PyObject* key; PyDict_Next(object, &position, &key, nullptr);) keys.push_back(key);
  return cat("(", join(keys, ", ", describe), keys.size() == 1 ? ",)" : ")");
}

std::string operand_text(const Check& check, const std::string& other) {
  if (check.kind == GuardKind::Length) return std::to_string(check.number);
  if (row_of(check.kind).applies == Applies::TwoNodes) return other;
  if (check.kind == GuardKind::SetIs)
    return cat("{", join(check.details->elements, ", ", [](const auto& row) { return describe(row.second); }), "}");
  if (check.constant) return describe(check.constant.get());
  return check.details->words;
}

}  // namespace

Applies applies(GuardKind kind) { return row_of(kind).applies; }
int cost(GuardKind kind) { return kWords[static_cast<size_t>(kind)].cost; }

Check make_check(const GuardSet::Entry& entry, int32_t node) {
  const Row& row = row_of(entry.kind);
  PyObject* operand = entry.operand.get();
  GL_CHECK(suits(row.operand, operand),
           cat("wrong operand of a guard \"", kWords[static_cast<size_t>(entry.kind)].text, "\": ", describe(operand)));
  Check check{row.run, entry.kind, node, entry.number, {}, {}, 0, std::make_unique<CheckDetails>()};
  if (row.operand == Operand::Type || row.operand == Operand::Object) {
    check.identity = Handle(operand);
    check.details->words = describe(operand);
    return check;
  }
  check.constant = entry.operand;
  if (row.operand == Operand::Set) take_elements(operand, &check);
  if (row.operand == Operand::Key) {
    check.hash = PyObject_Hash(operand);
    if (check.hash == -1) PyErr_Clear();
    GL_CHECK(check.hash != -1, "the key of a guard can't be hashed: " + describe(operand));
  }
  return check;
}

std::string check_text(const Check& check, const std::string& origin, const std::string& other) {
  return fill(kWords[static_cast<size_t>(check.kind)].text, origin, operand_text(check, other));
}

std::string check_failure(const Check& check, const std::string& origin, const std::string& other, PyObject* object) {
  const std::string wanted = operand_text(check, other);
  std::string found = describe(object);
  if (check.kind == GuardKind::TypeIs) found = describe(reinterpret_cast<PyObject*>(Py_TYPE(object)));
  if (check.kind == GuardKind::Length) found = std::to_string(raw_length(object));
  if (check.kind == GuardKind::KeysAre) found = keys_text(object);
  if (found == wanted) found = "another " + found;
  const std::string_view pattern = row_of(check.kind).failure;
  const size_t place = pattern.find('!');
  std::string words = fill(pattern.substr(0, place), origin, wanted);
  if (place != pattern.npos) words += found + fill(pattern.substr(place + 1), origin, wanted);
  return words;
}

}  // namespace graphlift::guards
