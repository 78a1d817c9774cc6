// Owns: how many results of a graph in text have a place in its program's arena. Must not: say which calls are native.
#pragma once

#include <gtest/gtest.h>

#include "backends/reference/program.h"

namespace graphlift::reference {

inline uint64_t planned(const std::string& text, const NativeFactory& native, bool arena = true) {
  const auto graph = ir::parse(text);
  EXPECT_EQ(ir::verify(*graph), "");
  const uint64_t before = backend::counters().in_arenas;
  const Program program(*graph, {}, native, *graph, SIZE_MAX, arena);
  return backend::counters().in_arenas - before;
}

}  // namespace graphlift::reference
