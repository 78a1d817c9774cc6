// Owns: words, numbers and strings of graph text, with their places for errors. Only ir/ includes this.
// Must not: know the grammar.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace graphlift::ir {

// Blanks between words are skipped, line ends are not.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  bool at_end();
  char peek();  // the next character that is not blank; 0 at the end
  bool accept(std::string_view token);
  bool accept_adjacent(char c);  // with no blank before it
  void expect(std::string_view token);
  std::string peek_word();  // letters, digits, _ . :
  std::string word();
  int64_t integer();                 // no sign
  std::optional<double> floating();  // with a sign; none, and nothing read, when the next is no double
  std::string quoted();
  std::string rest_of_line();  // behind a '#', without blanks around
  void end_line();             // reads the line end; fails on anything else
  void skip_lines();           // empty lines, and lines that hold a comment alone
  [[noreturn]] void fail(const std::string& message) const;

 private:
  void skip_blanks();

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace graphlift::ir
