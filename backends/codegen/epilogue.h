// Owns: which calls behind one that the backend takes are computed together with it, so that its result is stored once.
// Must not: know what a backend can finish a call with.
#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"

namespace graphlift::codegen {

// A call and those behind it, each of which is the only one to read the result of the one before; for one result at
// most it is only the first one to read it.
using Chain = std::vector<const ir::Node*>;

enum class Finish : uint8_t {
  No,
  Through,  // a later call may end the chain, the last one can't
  Here,     // the chain may end with its last call
};

// Asked about a chain; `kept`: the place in it of the call whose result others read, too, -1: none. The chain has to
// give that result besides the last one.
using Finishes = std::function<Finish(const Chain& chain, int kept)>;

struct Epilogue {
  Chain before;  // the last call, first to last
  int kept = -1;
};
// By the last call of a chain.
using Epilogues = std::unordered_map<const ir::Node*, Epilogue>;

// `finishes` is asked about longer and longer chains; the longest one that may end is taken.
Epilogues find_epilogues(const ir::Graph& graph, const std::function<bool(const ir::Node&)>& takes,
                         const Finishes& finishes);

// Calls `visit(const ValueRef&)` for each tensor that a chain reads from outside, in order.
template <class Visit>
void for_each_read(const Chain& chain, Visit&& visit) {
  for (size_t i = 0; i < chain.size(); ++i)
    for (const ir::Arg& arg : chain[i]->args)
      ir::for_each_value(arg, [&](const ir::ValueRef& value) {
        if (i == 0 || value.node != chain[i - 1]) visit(value);
      });
}

}  // namespace graphlift::codegen
