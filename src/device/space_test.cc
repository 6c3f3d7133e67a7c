#include "device/space.h"

#include <gtest/gtest.h>

#include <array>

namespace sluice::device {
namespace {

class OtherSpace final : public Space {
 public:
  std::string_view name() const override { return "other"; }
};

TEST(HostSpace, TurnsItsAddressesBackIntoPointers) {
  const std::array<std::byte, 8> bytes{};
  const Address first = host_space().address(bytes.data());
  EXPECT_EQ(host_space().pointer(first), bytes.data());
  EXPECT_EQ(host_space().pointer(first + 5), bytes.data() + 5);
  EXPECT_EQ(host_space().address(bytes.data() + 5), first + 5);
}

TEST(HostSpace, HasAnAddressOfNothing) {
  EXPECT_FALSE(host_space().address(nullptr));
  EXPECT_EQ(host_space().pointer({}), nullptr);
}

TEST(HostSpaceDeathTest, RefusesAddressesOfOtherSpaces) {
  const OtherSpace other;
  EXPECT_DEATH(host_space().pointer({&other, 64}), "other");
}

}  // namespace
}  // namespace sluice::device
