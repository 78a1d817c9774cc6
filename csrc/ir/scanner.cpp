// Owns: the scanner of graph text.
// Must not: know the grammar.
#include "ir/scanner.h"

#include <charconv>
#include <limits>

#include "ir/graph.h"
#include "ir/text.h"

namespace graphlift::ir {

void Scanner::fail(const std::string& message) const {
  int line = 1, column = 1;
  for (char c : text_.substr(0, at_)) {
    column = c == '\n' ? 1 : column + 1;
    line += c == '\n';
  }
  throw ParseError(message, line, column);
}

void Scanner::skip_blanks() {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r')) ++at_;
}

bool Scanner::at_end() {
  skip_blanks();
  return at_ == text_.size();
}

char Scanner::peek() { return at_end() ? '\0' : text_[at_]; }

bool Scanner::accept(std::string_view token) {
  skip_blanks();
  if (!text_.substr(at_).starts_with(token)) return false;
  size_t end = at_ + token.size();
  // A word ends where the token ends.
  bool cut =
      is_word_character(token.back()) && token.back() != ':' && end < text_.size() && is_word_character(text_[end]);
  if (cut) return false;
  at_ = end;
  return true;
}

bool Scanner::accept_adjacent(char c) {
  if (at_ == text_.size() || text_[at_] != c) return false;
  ++at_;
  return true;
}

void Scanner::expect(std::string_view token) {
  if (!accept(token)) fail("expected " + quote(token));
}

std::string Scanner::peek_word() {
  skip_blanks();
  size_t end = at_;
  while (end < text_.size() && is_word_character(text_[end])) ++end;
  return std::string(text_.substr(at_, end - at_));
}

std::string Scanner::word() {
  std::string result = peek_word();
  if (result.empty()) fail("expected a word");
  at_ += result.size();
  return result;
}

int64_t Scanner::integer() {
  skip_blanks();
  int64_t result = 0;
  auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), result);
  if (error != std::errc() || result < 0) fail("expected an integer of 64 bits");
  at_ = static_cast<size_t>(end - text_.data());
  return result;
}

std::optional<double> Scanner::floating() {
  skip_blanks();
  size_t begin = at_ + (at_ < text_.size() && text_[at_] == '-' ? 1 : 0), end = begin;
  bool is_double = false, negative = begin > at_;
  while (end < text_.size()) {
    char c = text_[end];
    bool exponent_sign = (c == '-' || c == '+') && end > begin && text_[end - 1] == 'e';
    if (!is_word_character(c) && !exponent_sign) break;
    is_double |= c == '.' || c == 'e';
    ++end;
  }
  std::string_view word = text_.substr(begin, end - begin);
  double value = 0;
  if (word == "inf" || word == "nan") {
    using Limits = std::numeric_limits<double>;
    value = word == "inf" ? Limits::infinity() : Limits::quiet_NaN();
  } else {
    if (word.empty() || !is_double || !std::isdigit(static_cast<unsigned char>(word[0]))) return std::nullopt;
    auto [last, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || last != word.data() + word.size()) return std::nullopt;
  }
  at_ = end;
  return negative ? -value : value;
}

std::string Scanner::quoted() {
  expect("\"");
  std::string result;
  while (true) {
    if (at_ == text_.size() || text_[at_] == '\n') fail("a string without an end");
    char c = text_[at_++];
    if (c == '"') return result;
    if (c != '\\') {
      result += c;
      continue;
    }
    if (at_ == text_.size()) fail("a string without an end");
    char escape = text_[at_++];
    if (escape == 'x') {
      unsigned byte = 0;
      std::string_view digits = text_.substr(at_, 2);
      auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
      if (error != std::errc() || end != digits.data() + 2) fail("\\x takes two digits");
      result += static_cast<char>(byte);
      at_ += 2;
    } else {
      result += escape == 'n' ? '\n' : escape;
    }
  }
}

std::string Scanner::rest_of_line() {
  expect("#");
  skip_blanks();
  size_t end = text_.find('\n', at_);
  if (end == std::string_view::npos) end = text_.size();
  std::string result(text_.substr(at_, end - at_));
  at_ = end;
  while (!result.empty() && (result.back() == ' ' || result.back() == '\r')) result.pop_back();
  return result;
}

void Scanner::end_line() {
  if (at_end()) return;
  if (text_[at_] != '\n') fail("expected the end of the line");
  ++at_;
}

void Scanner::skip_lines() {
  while (true) {
    char c = peek();
    if (c == '#') {
      rest_of_line();
    } else if (c == '\n') {
      ++at_;
    } else {
      return;
    }
  }
}

}  // namespace graphlift::ir
