// Owns: the user's program as text for logs: source lines (linecache) and instructions (dis).
// Must not: be asked while nobody reads a log, or leave a Python error behind.
#pragma once

#include <string>
#include <vector>

#include "capture/capture.h"
#include "ir/graph.h"

namespace graphlift::engine {

// The line without its indentation; empty when the file can't be read.
std::string line_text(const ir::SourceLine& where);
// One instruction a line, indented by the depth of its frame; a frame begins with the name of its function.
std::string instructions_text(const std::vector<capture::Evaluated>& evaluated);

}  // namespace graphlift::engine
