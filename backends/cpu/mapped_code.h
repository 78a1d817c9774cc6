// Owns: pages of a library's code that are mapped. Must not: know libraries.
#pragma once

#include <string_view>

namespace graphlift::cpu {

// The system may have the pages of what no one writes in libraries whose file's name begins so; they are read again,
// mostly from its cache, when they are used again. Does nothing elsewhere than on Linux.
void unmap_code(std::string_view library);

}  // namespace graphlift::cpu
