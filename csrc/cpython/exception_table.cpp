// Owns: decoding of the exception table: per entry four numbers (begin, length, target, depth << 1 | push unit) in
// groups of six bits, highest first; bit 6 says that more groups follow, bit 7 marks the first byte of an entry.
#include "cpython/exception_table.h"

#include <algorithm>

namespace graphlift::cpython {
namespace {

class Reader {
 public:
  explicit Reader(std::span<const unsigned char> bytes) : bytes_(bytes) {}
  bool done() const { return at_ >= bytes_.size(); }
  bool number(int* out) {
    unsigned value = 0;
    for (;;) {
      if (done()) return false;
      const unsigned byte = bytes_[at_++];
      value = (value << 6) | (byte & 63);
      if (!(byte & 64)) break;
    }
    *out = static_cast<int>(value);
    return true;
  }

 private:
  std::span<const unsigned char> bytes_;
  size_t at_ = 0;
};

}  // namespace

std::vector<HandlerEntry> parse_exception_table(std::span<const unsigned char> bytes) {
  std::vector<HandlerEntry> entries;
  Reader reader(bytes);
  int begin, length, handler, depth;
  while (!reader.done() && reader.number(&begin) && reader.number(&length) && reader.number(&handler) &&
         reader.number(&depth)) {
    entries.push_back({begin, begin + length, handler, depth >> 1, (depth & 1) != 0});
  }
  return entries;
}

const HandlerEntry* find_handler(std::span<const HandlerEntry> entries, int unit) {
  auto after = std::upper_bound(entries.begin(), entries.end(), unit,
                                [](int value, const HandlerEntry& entry) { return value < entry.begin; });
  if (after == entries.begin()) return nullptr;
  const HandlerEntry& entry = *(after - 1);
  return unit < entry.end ? &entry : nullptr;
}

}  // namespace graphlift::cpython
