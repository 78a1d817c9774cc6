// Owns: the straight-line parts of a kernel's body: index arithmetic, loads, primitives and stores of one row, column
// or step, lane by lane. Must not: know loops over steps, or how threads join values.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "backends/cuda/schedule.h"

namespace graphlift::cuda {

class ValueWriter {
 public:
  ValueWriter(const codegen::Kernel& kernel, const Schedule& schedule, const std::vector<bool>& by_value);

  void begin();        // a new function body
  std::string take();  // its text
  void line(const std::string& text);

  // A size as an expression; the kernel gets it as a parameter when it is symbolic.
  std::string number(const ir::Sym& value);
  // Declares the indices of axes, of which `linear` counts the steps.
  void indices(const std::string& linear, const std::vector<int>& axes);
  // Of a peeled row: `head`, the elements before its first vector, and `vectors`, their number.
  void peel();
  // Values of a row that need the loops before `phase`, and, if asked for, the stores of such, under a condition.
  void row_values(int phase, bool stores, const std::string& guard);
  // One step of the loop of a phase: adds to reductions, stores elements.
  void element_values(int phase, const std::vector<int>& reductions);
  // Whether the loop of a phase does more than reduce to rows.
  bool has_elements(int phase) const;
  // Instead of begin(), for the last function: what is made of reductions across rows. Values are kept no more.
  void begin_late();
  // Those of one element, and their stores.
  void late_values();
  void declare_kept(int phase);  // before the loop of the phase
  // See Schedule::maximum.
  int maximum(int i) const { return schedule_.maximum.empty() ? -1 : schedule_.maximum[static_cast<size_t>(i)]; }
  bool is_live(int node) const { return live_[static_cast<size_t>(node)]; }
  int row_lanes() const { return schedule_.shape == Shape::Rows ? 1 : schedule_.lanes; }
  int64_t shared_bytes() const { return shared_bytes_; }  // of kept(), asked for at the launch
  // Of rows that are copied ahead (Schedule::stages). What is the same for all rows, before the first one.
  void declare_steady();
  void load_steady();
  // The elements of a step, to the memory of their stage, which `to` points to.
  void copy_ahead();
  // Values of a row that are read one row ahead: m<i> is the next one's, w<i> this one's.
  void declare_next_row();
  void take_next_row();
  void read_next_row();
  int64_t stage_bytes() const { return schedule_.stages > 0 ? shared_bytes_ / schedule_.stages : 0; }
  void need_room(int bytes) { room_ = bytes > room_ ? bytes : room_; }  // shared memory

  const std::vector<ir::Sym>& numbers() const { return numbers_; }
  std::vector<int> alignment() const;

 private:
  const codegen::ScalarNode& node(int i) const { return kernel_.nodes[static_cast<size_t>(i)]; }
  bool is_inner(int i) const { return schedule_.is_inner[static_cast<size_t>(i)]; }
  bool is_late(int i) const { return schedule_.late[static_cast<size_t>(i)]; }
  bool adds_across(int i, int at) const {
    return node(i).kind == codegen::ScalarNode::Kind::Across && is_live(i) && phase(i) == at;
  }
  bool stores_element(const codegen::KernelStore& store, int at) const;
  int phase(int i) const { return schedule_.phase[static_cast<size_t>(i)]; }
  void find_live();
  void find_escaping();
  void find_kept();
  void find_shared();
  void find_ahead();
  std::set<int> met_again(const std::map<int, int>& first) const;
  void keep_met_again();
  bool is_ahead(int i) const { return schedule_.stages > 0 && schedule_.ahead[static_cast<size_t>(i)]; }
  bool is_next_row(int i) const;
  std::map<int, int> first_uses(std::map<int, int>* uses) const;
  std::set<int> needed(int phase, bool without_kept) const;
  void need(int i, int phase, bool without_kept, std::set<int>* found) const;
  bool is_at_hand(int i, int phase) const;

  std::string affine(const codegen::Affine& index);
  ir::Sym lane_stride(const codegen::Affine& index) const;
  bool is_same_for_lanes(int load) const;
  void find_guards();
  std::string place_text(int i, bool by_lane = false);
  std::string load_place(int i, bool by_lane = false);
  std::string guard(int load);
  std::string name(int i) const;
  std::string read(int i) const;
  void load(int i, int lanes);
  void load_shared(int i, int lanes);
  void keep_shared(int i, int lanes);
  std::string shared_place(int i) const;
  void row_load(int i, int lanes);
  void load_lanes(int i, const std::string& to, const std::string& from, int lanes);
  std::string expression(int i, int lanes);
  void declare_draws(const std::vector<int>& values);
  std::string shared_draw(int i, int lanes, std::vector<std::string>* args);
  void compute(int i, int lanes);
  void store(size_t i, int lanes);
  void either(const std::string& whole);
  void declare_written(size_t i, int lanes);
  void put_written(size_t i, int lanes);
  void open_lanes(int lanes);
  void close_lanes(int lanes);

  const codegen::Kernel& kernel_;
  const Schedule& schedule_;
  const std::vector<bool>& by_value_;
  std::vector<ir::Sym> numbers_;
  std::map<std::string, int> number_of_;
  std::string text_;
  std::string depth_;
  int room_ = 0;
  std::vector<bool> live_;
  std::vector<bool> escapes_;  // values of rows that are read outside their own lane loop
  std::map<int, int> kept_;    // element values in registers: the phase that makes them
  struct Shared {
    int made;       // the phase that reads them from memory
    int64_t place;  // of the first, in bytes
  };
  std::map<int, Shared> shared_;  // loads whose values stay in shared memory; a thread reads its own only
  int64_t shared_bytes_ = 0;
  struct Condition {
    int node;
    bool holds;
  };
  std::map<int, std::vector<Condition>> guards_;  // loads that are needed only where all of these are so
  std::set<int> uniform_;                         // loads that are the same for all lanes
};

}  // namespace graphlift::cuda
