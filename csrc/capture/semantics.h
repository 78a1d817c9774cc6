// Owns: the evaluator's semantics while capturing: every slot goes to the family that knows it.
// Must not: hold state of its own beyond where the root stands.
#pragma once

#include "capture/capture.h"
#include "capture/handled.h"
#include "eval/semantics.h"

namespace graphlift::capture {

class CaptureSemantics final : public eval::Semantics {
 public:
  CaptureSemantics(Capture& capture, _PyInterpreterFrame* root, size_t stop_at)
      : capture_(capture), root_(root), stop_at_(stop_at) {
    capture.admit_root_local = [this](int slot) {
      cpython::Frame frame(root_);
      return admit_local(frame, slot);
    };
    capture.root_instructions = [this] { return root_instructions_; };
  }

  // Before this instruction, in whichever frame, `at_depth` is asked to end the attempt.
  void stop_at_depth(size_t instruction, std::function<void()> at_depth) {
    depth_stop_ = instruction;
    at_depth_ = std::move(at_depth);
  }
  // From here on this frame is the root.
  void move_root(cpython::Frame frame) {
    root_ = frame.raw();
    touched_.clear();
  }
  size_t root_instructions() const { return root_instructions_; }  // executed so far
  int last_root_unit() const { return last_unit_; }
  std::vector<bool>& touched() { return touched_; }  // local slots of the root that hold what capture put there
  // The values that appeared on the root's stack, by the number of the instruction that made them.
  size_t born_at(PyObject* object) const;

  eval::Step before(cpython::Frame&, int unit) override;
  bool unwinding() override { return left_ || capture_.pending.has_value(); }
  int raising(PyObject* exception_or_null, PyObject* cause_or_null) override {
    return may_raise(capture_, exception_or_null, cause_or_null);
  }
  Ref unary(int op, PyObject* value) override;
  Ref binary(int op, PyObject* left, PyObject* right) override;
  Ref compare(int op, PyObject* left, PyObject* right) override;
  int is_same(PyObject* left, PyObject* right) override;
  int contains(PyObject* container, PyObject* item) override;
  int truth(PyObject* value) override;
  Ref get_attr(PyObject* object, PyObject* name) override;
  Ref get_method(PyObject* object, PyObject* name, Ref* self) override;
  Ref get_super_attr(PyObject* super_type, PyObject* type, PyObject* self, PyObject* name) override;
  int set_attr(PyObject* object, PyObject* name, PyObject* value) override;
  Ref get_item(PyObject* object, PyObject* key) override;
  int set_item(PyObject* object, PyObject* key, PyObject* value) override;
  Ref length(PyObject* object) override;
  Ref load_global(cpython::Frame&, PyObject* name) override;
  int store_global(cpython::Frame&, PyObject* name, PyObject* value) override;
  Ref load_name(cpython::Frame&, PyObject* name) override;
  Ref load_cell(cpython::Frame&, PyObject* cell) override;
  int store_cell(cpython::Frame&, PyObject* cell, PyObject* value) override;
  Ref import_name(cpython::Frame&, PyObject* name, PyObject* fromlist, PyObject* level) override;
  Ref import_from(cpython::Frame&, PyObject* module, PyObject* name) override;
  int import_star(cpython::Frame&, PyObject* module) override;
  Ref call(PyObject* callable, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) override;
  Ref call_ex(PyObject* callable, PyObject* args_tuple, PyObject* kwargs_or_null) override;
  Ref make_function(cpython::Frame&, PyObject* code, PyObject* defaults, PyObject* kwdefaults, PyObject* annotations,
                    PyObject* closure) override;
  Ref iterate(PyObject* iterable) override;
  Ref next(PyObject* iterator) override;
  int unpack(PyObject* iterable, int before, int after, bool star, Ref* out) override;
  int list_append(PyObject* list, PyObject* value) override;
  int set_add(PyObject* set, PyObject* value) override;
  int map_add(PyObject* dict, PyObject* key, PyObject* value) override;
  Ref list_to_tuple(PyObject* list) override;
  int list_extend(PyObject* list, PyObject* iterable) override;
  int set_update(PyObject* set, PyObject* iterable) override;
  int dict_update(PyObject* dict, PyObject* mapping) override;
  int dict_merge(PyObject* dict, PyObject* mapping, PyObject* callable) override;
  Ref format(PyObject* value, int conversion, PyObject* spec_or_null) override;
  Ref load_special(PyObject* object, PyObject* name) override;
  Ref match_class(PyObject* subject, PyObject* type, int nargs, PyObject* names) override;
  Ref match_keys(PyObject* subject, PyObject* keys) override;
  int match_is(PyObject* subject, bool mapping) override;

 private:
  bool begun_outside(PyObject* container);
  bool touch_local(cpython::Frame& frame, int unit);
  bool admit_local(cpython::Frame& frame, int slot);
  void note(cpython::Frame& frame, int unit);
  Ref match_number(PyObject* subject, PyObject* type, int nargs, PyObject* names);

  Capture& capture_;
  _PyInterpreterFrame* root_;
  size_t stop_at_;
  size_t depth_stop_ = 0;  // 0: nowhere
  std::function<void()> at_depth_;
  bool left_ = false;  // the exit at depth was reached: what is still entered is emptied
  size_t root_instructions_ = 0;
  int last_unit_ = 0;
  std::vector<bool> touched_;
  std::unordered_map<PyObject*, size_t> births_;
};

}  // namespace graphlift::capture
