// Owns: see imported.h.
#include "cpython/imported.h"

#include <string>

#include "cpython/hook.h"

namespace graphlift::cpython {

Ref imported(const char* module, const char* path) {
  HookScope nobody(nullptr);
  Ref object = Ref::steal(PyImport_ImportModule(module));
  std::string rest = path;
  while (object && !rest.empty()) {
    const size_t dot = rest.find('.');
    object = Ref::steal(PyObject_GetAttrString(object.get(), rest.substr(0, dot).c_str()));
    rest = dot == std::string::npos ? "" : rest.substr(dot + 1);
  }
  return object;
}

}  // namespace graphlift::cpython
