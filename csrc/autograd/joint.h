// Owns: a joint graph in dense numbers, with what each call is for and where it may run.
// Must not: choose what is saved.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace graphlift::autograd {

// Values are numbered in program order; call c's outputs are first_value ... first_value + outputs - 1.
struct Joint {
  struct Call {  // inputs of the graph are calls without reads
    const ir::Node* node = nullptr;
    int first_value = 0;
    std::vector<int> reads;
    bool engine =
        false;  // recorded while the engine computed the gradients (not in a backward() inside of the function)
    bool forward = false;  // a forward output, or an effect in forward, needs it
    bool late = false;     // can't run before backward, or must not
    bool wanted = false;   // a gradient, or an effect in backward, needs it
    bool fixed = false;    // runs in forward and never again
  };

  std::vector<Call> calls;
  std::vector<int> definer;     // by value: its call
  std::vector<int> owner;       // by value: the value whose memory it shares, maybe itself
  std::vector<bool> read_late;  // by value: a late call or a gradient reads it
  std::vector<int> outputs;     // values of the forward outputs; -1: None
  std::vector<int> gradients;   // values; -1: None
  int primals = 0;

  ir::ValueRef value(int number) const;
  bool is_primal(int value) const { return definer[value] < primals; }
};

Joint analyze(const ir::Graph& graph, int primals, int forward_outputs);

}  // namespace graphlift::autograd
