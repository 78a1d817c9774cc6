// Owns: the state of one attempt at capturing a region: guards, identity table, tracer, pending break, ambient state.
// The evaluator's semantics (semantics.cpp) and the families (attributes, items, names, calls, operators) work on it.
// Must not: change the real frame or any outside object.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/ref.h"
#include "capture/breaks.h"
#include "capture/context_variables.h"
#include "capture/depth.h"
#include "capture/objects.h"
#include "cpython/death.h"
#include "cpython/frame.h"
#include "cpython/hook.h"
#include "guards/guard.h"
#include "ir/sym.h"
#include "torch/objects.h"
#include "torch/tracer.h"

namespace graphlift::capture {

// What earlier captures of the same code saw at an origin, by the origin's text: decides what becomes symbolic.
struct Seen {
  std::unordered_map<std::string, std::vector<int64_t>> ints;                // values read from outside
  std::unordered_map<std::string, std::vector<double>> floats;               // likewise
  std::unordered_map<std::string, std::vector<std::vector<int64_t>>> sizes;  // tensor sizes
  std::unordered_map<std::string, PyObject*> generators;                     // the first one; its address alone
  bool expects_nothing = false;  // expectations failed too often, or a region that relied on them would have acted
  bool hooks_act = false;        // a hook that a backward behind the region would call again acts
};

enum class Dynamic : uint8_t { Automatic, Always, Never };

// One instruction as it was evaluated, for the log "bytecode".
struct Evaluated {
  Ref code;
  int unit;
  size_t depth;  // 0: the root
};

// A torch.utils.checkpoint whose function is being evaluated.
struct OpenCheckpoint {
  size_t acts;  // that were done in front of it
  bool reentrant;
};

struct Limits {
  size_t instructions = 400000;  // of one region, inlined frames included
  size_t graph_calls = 20000;
};

class Capture {
 public:
  Capture(PyCodeObject* code, Dynamic dynamic, Seen* seen);
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  // --- reading from outside ------------------------------------------------------------------------------------------
  // An object was found at `origin`. Returns what the captured program sees: itself (a constant, now guarded by value;
  // or an outside object, now in the table), a stand-in for a tensor, or a symbolic int. Null: error or break.
  Ref admit(PyObject* object, guards::OriginId origin);
  // An object of whatever type was found at `origin`: it comes into the table, or is guarded to be the one that is
  // there.
  void know(PyObject* object, guards::OriginId origin);
  // The origin of an object: from the table, or a Constant root when it is a type, module or other guarded singleton.
  guards::OriginId origin_of(PyObject* object);
  bool is_outside(PyObject* object) { return objects.find(object) != nullptr; }
  // The outside tensor behind a stand-in; null: a fresh one.
  PyObject* outside_tensor(PyObject* stand_in) const {
    auto found = tensor_of_stand_in.find(stand_in);
    return found == tensor_of_stand_in.end() ? nullptr : found->second;
  }
  // Guards that a type's attribute lookup gives what it gives now. Immutable and fresh types need none. Borrowed; may
  // be null.
  PyObject* type_lookup(PyTypeObject* type, PyObject* name);
  // Ties the region to a random generator from outside. False after a break: it is another one from call to call.
  bool tie_generator(PyObject* generator, const std::string& who);
  void fix_float(int primal);  // the float that is this primal must be what it is now
  // A symbolic int becomes its hint, guarded; other objects come back unchanged.
  Ref concrete(PyObject* object);

  guards::OriginTable& origins() { return guards.origins(); }
  // Where what the root frame holds is read: at a region's begin in the frame itself, then in callers (callers.h).
  guards::OriginId root_local(int slot);
  guards::OriginId root_stack(int slot);
  std::optional<int> caller_root;  // the first of the roots of the caller that is the root frame now
  ir::SourceLine where() const;
  std::vector<ir::SourceLine> user_stack() const;

  PyCodeObject* code;  // of the root
  Dynamic dynamic;
  Seen* seen;
  Limits limits;
  bool recorded = false;  // Request::recorded
  guards::GuardSet guards;
  Objects objects;
  ir::ShapeEnv shapes;
  std::unique_ptr<torch_layer::Tracer> tracer;
  std::optional<Break> pending;
  DepthExit left;      // with `pending`: where it happened
  bool again = false;  // with `pending`: nothing is in the way of another attempt at the same region
  std::optional<std::string> internal_error;  // of an inlined frame, thrown again at the root
  ContextVariables context;
  // A reference that an outside object had to another one was dropped: what weak references tell of is not known.
  bool dropped = false;
  // Outside tensors by identity -> stand-in; and back.
  std::unordered_map<PyObject*, Ref> stand_ins;
  std::unordered_map<PyObject*, PyObject*> tensor_of_stand_in;
  // By stand-in of a leaf: its .grad when it was first needed; null: written before it was read.
  std::unordered_map<PyObject*, Ref> gradients;
  // Outside objects and stand-ins of outside tensors whose identity decided something.
  std::unordered_set<PyObject*> told_apart;
  std::unordered_map<PyObject*, bool> made_generators;  // by torch.Generator(): whether its seed is known
  std::unordered_map<PyObject*, Ref> arrays;            // of numpy, from outside -> stand-in on the same memory
  std::unordered_map<PyObject*, std::pair<Ref, Ref>> computed_arrays;  // see computed_arrays.h: kept, its stand-in
  std::vector<guards::OriginId> primal_origins;                        // by primal
  std::vector<int> weights;                                            // primals that are InputPlan::weight
  std::unordered_map<guards::OriginId, Ref> int_symbols;               // outside ints that became symbolic
  std::unordered_map<guards::OriginId, Ref> float_inputs;              // outside floats that became inputs of the graph
  std::unordered_map<int, PyObject*> float_values;                     // their values now, by primal
  std::unordered_map<PyObject*, Ref> generators;                       // that were resumed here: weak references
  std::unordered_set<PyObject*> fresh_functions;                       // made by MAKE_FUNCTION while capturing
  std::unordered_set<PyObject*> fresh_types;                           // made by class statements while capturing
  std::unordered_set<PyObject*> known_functions;                       // entered through a guarded path
  std::vector<std::pair<Ref, std::vector<Ref>>> ambient_calls;         // setters of ambient state, in program order
  // Levels of functorch and of forward-mode gradients and hooks on what autograd saves that are open, by the root's
  // instruction that opened them.
  std::vector<size_t> open_levels;
  std::vector<std::pair<Ref, std::vector<Ref>>> deferred_calls;  // replayed after the graph ran
  std::vector<OpenCheckpoint> checkpoints;                       // innermost last
  std::vector<Ref> keep_alive;                                   // objects whose address was used as a key
  std::vector<cpython::Frame> frames;                            // inlined frames, root first
  std::vector<Standing> standing;                                // of the frames that began an instruction
  DepthExit raised;                      // where the last exception that left a frame was raised
  PyObject* raised_exception = nullptr;  // that one; its address alone
  // Admits a local variable of the root frame that C code is about to read there (set by the semantics). False: error
  // or break.
  std::function<bool(int slot)> admit_root_local;
  bool deriving = false;      // the snapshot is taken, and the backward of what the region returns is derived
  std::vector<size_t> hooks;  // that run while deriving: how many frames there were when each was called
  bool begins_frame = false;  // the region does
  bool scouted = false;       // branches were: its instructions can't run for real (control_flow.h)
  // References of the frames' contents as they were, which are put back later.
  std::function<void(cpython::Dropping&)> drop_copies;
  int hash_reads = 0;                         // calls for a hash, as a number, that are being evaluated
  bool address_hashed = false;                // a __hash__ in Python read an address, for C code to tell keys apart
  PyObject* handled_before = Py_None;         // what sys.exc_info() told of when the attempt began
  std::function<size_t()> root_instructions;  // that were begun so far
  size_t instructions = 0;
  std::vector<Evaluated> evaluated;  // empty while the log "bytecode" is off
  // The function behind a compiled callable (set by engine/): nested compiled code is entered like plain code.
  PyObject* (*wrapped_function)(PyObject* callable) = nullptr;

 private:
  Ref admit_tensor(PyObject* tensor, guards::OriginId origin);
  Ref admit_int(PyObject* value, guards::OriginId origin);
  Ref admit_float(PyObject* value, guards::OriginId origin);
};

// Immutable objects that are guarded by exact type and value and then treated as constants: None, bool, int, float,
// complex, str, bytes, Ellipsis, NotImplemented, and tuples of those.
bool is_value_constant(PyObject* object);
// Objects guarded by identity and then treated as constants: types, modules, C functions and methods, code, dtypes...
bool is_identity_constant(PyObject* object);

// In scope, torch and Python run as outside of any capture: what they do is no part of the program.
class TorchForReal {
 public:
  explicit TorchForReal(Capture& capture) : capture_(capture), nobody_(nullptr) { capture_.tracer->stop(); }
  ~TorchForReal() { capture_.tracer->start(); }
  TorchForReal(const TorchForReal&) = delete;
  TorchForReal& operator=(const TorchForReal&) = delete;

 private:
  Capture& capture_;
  cpython::HookScope nobody_;
};

}  // namespace graphlift::capture
