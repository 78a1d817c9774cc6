// Owns: words that print.cpp writes and parse.cpp reads. Only ir/ includes this.
// Must not: know the grammar (print.cpp's head has it).
#pragma once

#include <cctype>
#include <string>
#include <string_view>

namespace graphlift::ir {

// By c10::Layout and c10::MemoryFormat.
inline constexpr std::string_view kLayouts[] = {"strided",    "sparse",     "sparse_csr", "mkldnn",
                                                "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged"};
inline constexpr std::string_view kMemoryFormats[] = {"contiguous", "preserve", "channels_last", "channels_last_3d"};

inline bool is_word_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == ':';
}
bool is_word(std::string_view text);
std::string quote(std::string_view value);

}  // namespace graphlift::ir
