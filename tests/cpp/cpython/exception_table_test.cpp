// Owns: tests of the exception table's decoding on bytes made here, and of the look-up.
#include "cpython/exception_table.h"

#include <gtest/gtest.h>

namespace graphlift::cpython {
namespace {

// Six bits a group, highest first; bit 6: more follow; bit 7: first byte of an entry.
void append(std::vector<unsigned char>* bytes, unsigned value, bool first) {
  std::vector<unsigned char> groups{static_cast<unsigned char>(value & 63)};
  while (value >>= 6) groups.insert(groups.begin(), static_cast<unsigned char>((value & 63) | 64));
  if (first) groups[0] |= 128;
  bytes->insert(bytes->end(), groups.begin(), groups.end());
}

std::vector<unsigned char> table(const std::vector<HandlerEntry>& entries) {
  std::vector<unsigned char> bytes;
  for (const HandlerEntry& e : entries) {
    append(&bytes, static_cast<unsigned>(e.begin), true);
    append(&bytes, static_cast<unsigned>(e.end - e.begin), false);
    append(&bytes, static_cast<unsigned>(e.handler), false);
    append(&bytes, static_cast<unsigned>(e.depth << 1 | (e.push_unit ? 1 : 0)), false);
  }
  return bytes;
}

TEST(ExceptionTable, Empty) {
  EXPECT_TRUE(parse_exception_table({}).empty());
  EXPECT_EQ(find_handler({}, 0), nullptr);
}

TEST(ExceptionTable, SmallAndLargeNumbers) {
  const std::vector<HandlerEntry> entries{
      {1, 5, 40, 0, false}, {5, 64, 4096, 3, true}, {70, 300000, 262144, 63, false}};
  const std::vector<HandlerEntry> read = parse_exception_table(table(entries));
  ASSERT_EQ(read.size(), entries.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    EXPECT_EQ(read[i].begin, entries[i].begin);
    EXPECT_EQ(read[i].end, entries[i].end);
    EXPECT_EQ(read[i].handler, entries[i].handler);
    EXPECT_EQ(read[i].depth, entries[i].depth);
    EXPECT_EQ(read[i].push_unit, entries[i].push_unit);
  }
}

TEST(ExceptionTable, DamagedTableGivesWhatWasRead) {
  std::vector<unsigned char> bytes = table({{1, 5, 40, 0, false}, {70, 300, 2621, 3, false}});
  bytes.pop_back();
  EXPECT_EQ(parse_exception_table(bytes).size(), 1u);
}

TEST(ExceptionTable, FindsByHalfOpenRanges) {
  const std::vector<HandlerEntry> entries{{2, 5, 50, 0, false}, {5, 7, 60, 1, false}, {10, 11, 70, 2, true}};
  const auto handler = [&](int unit) {
    const HandlerEntry* entry = find_handler(entries, unit);
    return entry ? entry->handler : -1;
  };
  EXPECT_EQ(handler(0), -1);
  EXPECT_EQ(handler(1), -1);
  EXPECT_EQ(handler(2), 50);
  EXPECT_EQ(handler(4), 50);
  EXPECT_EQ(handler(5), 60);
  EXPECT_EQ(handler(6), 60);
  EXPECT_EQ(handler(7), -1);
  EXPECT_EQ(handler(10), 70);
  EXPECT_EQ(handler(11), -1);
  EXPECT_EQ(handler(1000), -1);
}

}  // namespace
}  // namespace graphlift::cpython
