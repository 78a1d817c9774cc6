// Owns: building small strings. Must not: know what the words mean.
#pragma once

#include <array>
#include <charconv>
#include <concepts>
#include <string>
#include <string_view>

namespace graphlift {

inline void append(std::string* out, std::string_view piece) { out->append(piece); }
inline void append(std::string* out, char piece) { out->push_back(piece); }
template <std::integral Number>
void append(std::string* out, Number piece) {
  out->append(std::to_string(piece));
}

// Three digits behind the point.
template <std::floating_point Number>
void append(std::string* out, Number piece) {
  std::array<char, 64> digits;
  const auto end = std::to_chars(digits.begin(), digits.end(), piece, std::chars_format::fixed, 3);
  out->append(digits.data(), end.ec == std::errc() ? static_cast<size_t>(end.ptr - digits.data()) : 0);
}

// "a" + 1 + 'c', in one string.
template <typename... Pieces>
std::string cat(const Pieces&... pieces) {
  std::string out;
  (append(&out, pieces), ...);
  return out;
}

// Items with a separator between; `words(item)` gives the text of one.
template <typename Range, typename Words>
std::string join(const Range& items, std::string_view separator, Words&& words) {
  std::string out;
  bool first = true;
  for (const auto& item : items) {
    if (!first) out.append(separator);
    first = false;
    append(&out, words(item));
  }
  return out;
}

template <typename Range>
std::string join(const Range& items, std::string_view separator) {
  return join(items, separator, [](const auto& item) -> const auto& { return item; });
}

// "{} is []" with the two places filled. Each place may be used any number of times.
inline std::string fill(std::string_view pattern, std::string_view braces, std::string_view brackets) {
  std::string out;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const std::string_view place = pattern.substr(i, 2);
    if (place != "{}" && place != "[]") {
      out.push_back(pattern[i]);
      continue;
    }
    out.append(place == "{}" ? braces : brackets);
    ++i;
  }
  return out;
}

}  // namespace graphlift
