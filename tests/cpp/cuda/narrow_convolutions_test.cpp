// Owns: tests of convolutions as products of patches: graphs in text files of tests/text/patches.
#include "backends/cuda/narrow_convolutions.h"

#include <gtest/gtest.h>

#include "ir/golden.h"

namespace graphlift::cuda {
namespace narrow_convolutions {

TEST(NarrowConvolutions, Goldens) {
  int files = 0;
  for (const ir::Golden& golden : ir::goldens("patches")) {
    SCOPED_TRACE(golden.path.filename().string());
    const auto graph = ir::parse(golden.input());
    ASSERT_EQ(ir::verify(*graph), "");
    const auto made = with_products_of_patches(*graph, 0);
    if (made) EXPECT_EQ(ir::verify(*made), "");
    golden.expect({{"after", made ? ir::print(*made) : "nothing\n"}});
    EXPECT_EQ(with_products_of_patches(*graph, 1), nullptr) << "of another device";
    ++files;
  }
  EXPECT_GT(files, 2);
}

}  // namespace narrow_convolutions
}  // namespace graphlift::cuda
