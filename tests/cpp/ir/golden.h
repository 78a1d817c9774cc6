// Owns: tests whose input and expected output are text files below tests/text. With GRAPHLIFT_UPDATE_GOLDENS=1 the
// expected parts are rewritten; the diff is then read like any other change. Must not: know what is tested.
//
//   key: value            settings, and lines that start with # as comments
//   --- name              a part; the first one is the input, the others are expected
//   text
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace graphlift::ir {

struct Golden {
  std::filesystem::path path;
  std::string head;
  std::vector<std::pair<std::string, std::string>> parts;

  // The value of `key: value`; empty when there is none.
  std::string setting(const std::string& key) const {
    std::istringstream lines(head);
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with(key + ": ")) return line.substr(key.size() + 2);
    return "";
  }

  const std::string& input() const { return parts.at(0).second; }

  // Compares the parts behind the input, or rewrites them.
  void expect(const std::vector<std::pair<std::string, std::string>>& actual) const {
    const char* update = std::getenv("GRAPHLIFT_UPDATE_GOLDENS");
    if (update && *update) {
      std::ofstream file(path);
      file << head << "--- " << parts.at(0).first << "\n" << input();
      for (const auto& [name, text] : actual) file << "--- " << name << "\n" << text;
      return;
    }
    ASSERT_EQ(parts.size(), actual.size() + 1) << path << ": expected parts are missing";
    for (size_t i = 0; i < actual.size(); ++i) {
      EXPECT_EQ(parts[i + 1].first, actual[i].first) << path;
      EXPECT_EQ(parts[i + 1].second, actual[i].second) << path << ", part " << actual[i].first;
    }
  }
};

// All files of tests/text/<folder>, sorted by name.
inline std::vector<Golden> goldens(const std::string& folder) {
  std::vector<Golden> all;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(GRAPHLIFT_TEXTS) / folder)) {
    if (entry.path().extension() != ".txt") continue;
    Golden golden;
    golden.path = entry.path();
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with("--- ")) {
        golden.parts.emplace_back(line.substr(4), "");
      } else {
        (golden.parts.empty() ? golden.head : golden.parts.back().second) += line + "\n";
      }
    }
    all.push_back(std::move(golden));
  }
  std::sort(all.begin(), all.end(), [](const Golden& a, const Golden& b) { return a.path < b.path; });
  return all;
}

}  // namespace graphlift::ir
