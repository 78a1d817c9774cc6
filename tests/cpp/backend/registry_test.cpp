// Owns: tests of the registry of backends.
#include <gtest/gtest.h>

#include "backend/backend.h"
#include "base/error.h"

namespace graphlift::backend {
namespace {

class Named : public Backend {
 public:
  explicit Named(std::string name) : name_(std::move(name)) {}
  std::string name() const override { return name_; }
  bool supports(ir::Device) const override { return true; }
  std::unique_ptr<CompiledGraph> compile(const ir::Graph&, const std::vector<at::Tensor>&,
                                         const Options&) const override {
    return nullptr;
  }
  std::string fingerprint() const override { return name_ + "-1"; }

 private:
  std::string name_;
};

TEST(Registry, FindsByNameAndRefusesASecond) {
  register_backend(std::make_unique<Named>("zeta"));
  register_backend(std::make_unique<Named>("alpha"));
  ASSERT_NE(find_backend("zeta"), nullptr);
  EXPECT_EQ(find_backend("zeta")->fingerprint(), "zeta-1");
  EXPECT_EQ(find_backend("omega"), nullptr);
  EXPECT_EQ(backend_names(), (std::vector<std::string>{"alpha", "zeta"}));
  EXPECT_THROW(register_backend(std::make_unique<Named>("zeta")), InternalError);
  EXPECT_THROW(register_backend(std::make_unique<Named>("")), InternalError);
}

}  // namespace
}  // namespace graphlift::backend
