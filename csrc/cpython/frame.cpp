// Owns: the fields of _PyInterpreterFrame in 3.11, 3.12 and 3.13. Up to 3.12 a frame keeps the unit before the next
// one, which is the executing instruction's own while that has no inline caches; 3.13 keeps the executing (or next)
// instruction.
#include "cpython/internal.h"

#include "cpython/frame.h"

namespace graphlift::cpython {

#if PY_VERSION_HEX >= 0x030d0000
PyCodeObject* Frame::code() const { return reinterpret_cast<PyCodeObject*>(raw_->f_executable); }
int Frame::position() const { return static_cast<int>(raw_->instr_ptr - _PyCode_CODE(code())); }
void Frame::set_position(int unit) { raw_->instr_ptr = _PyCode_CODE(code()) + unit; }
void Frame::set_executing(int unit) { raw_->instr_ptr = _PyCode_CODE(code()) + unit; }
int Frame::executing() const { return static_cast<int>(raw_->instr_ptr - _PyCode_CODE(code())); }
#else
PyCodeObject* Frame::code() const { return raw_->f_code; }
int Frame::position() const { return static_cast<int>(raw_->prev_instr - _PyCode_CODE(raw_->f_code)) + 1; }
void Frame::set_position(int unit) { raw_->prev_instr = _PyCode_CODE(raw_->f_code) + unit - 1; }
void Frame::set_executing(int unit) { raw_->prev_instr = _PyCode_CODE(raw_->f_code) + unit; }
int Frame::executing() const { return static_cast<int>(raw_->prev_instr - _PyCode_CODE(raw_->f_code)); }
#endif

#if PY_VERSION_HEX >= 0x030c0000
PyObject* Frame::function() const { return raw_->f_funcobj; }
#else
PyObject* Frame::function() const { return reinterpret_cast<PyObject*>(raw_->f_func); }
#endif

PyObject* Frame::globals() const { return raw_->f_globals; }
PyObject* Frame::builtins() const { return raw_->f_builtins; }
PyObject* Frame::locals_mapping() const { return raw_->f_locals; }
int Frame::local_count() const { return code()->co_nlocalsplus; }
PyObject** Frame::locals() const { return raw_->localsplus; }
PyObject** Frame::stack() const { return raw_->localsplus + local_count(); }
int& Frame::top() const { return raw_->stacktop; }
int Frame::depth() const { return raw_->stacktop - local_count(); }
void Frame::set_depth(int depth) { raw_->stacktop = local_count() + depth; }
bool Frame::is_generator() const { return raw_->owner == FRAME_OWNED_BY_GENERATOR; }
int Frame::line_of(int unit) const { return PyCode_Addr2Line(code(), unit * static_cast<int>(sizeof(_Py_CODEUNIT))); }

LinkFrame::LinkFrame(Frame frame) {
  _PyInterpreterFrame*& current = current_frame(PyThreadState_Get());
  state_[0] = &current;
  state_[1] = current;
  state_[2] = frame.raw();
  frame.raw()->previous = current;
  current = frame.raw();
}

LinkFrame::~LinkFrame() {
  *static_cast<_PyInterpreterFrame**>(state_[0]) = static_cast<_PyInterpreterFrame*>(state_[1]);
  static_cast<_PyInterpreterFrame*>(state_[2])->previous = nullptr;
}

// What the frame was called from becomes current, so that LinkFrame puts the frame behind it once more.
RelinkFrame::RelinkFrame(Frame frame) {
  _PyInterpreterFrame*& current = current_frame(PyThreadState_Get());
  state_[0] = &current;
  state_[1] = current;
  state_[2] = frame.raw();
  state_[3] = frame.raw()->previous;
  current = frame.raw()->previous;
}

RelinkFrame::~RelinkFrame() {
  *static_cast<_PyInterpreterFrame**>(state_[0]) = static_cast<_PyInterpreterFrame*>(state_[1]);
  static_cast<_PyInterpreterFrame*>(state_[2])->previous = static_cast<_PyInterpreterFrame*>(state_[3]);
}

}  // namespace graphlift::cpython
