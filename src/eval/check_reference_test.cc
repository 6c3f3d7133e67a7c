#include "eval/check_reference.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace sluice::eval {
namespace {

TEST(CheckReference, OtherRoutersAreAnotherModel) {
  EXPECT_NO_THROW(check_reference_identity(0x12, 0x12, "r"));
  try {
    check_reference_identity(0x12, 0x13, "r");
    FAIL() << "another identity passed";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalid);
    EXPECT_EQ(error.where(), "r");
    EXPECT_EQ(error.expected_text(), "tensors and routers of identity 0000000000000012");
    EXPECT_EQ(error.found_text(), "0000000000000013");
    EXPECT_FALSE(error.fix_text().empty());
  }
}

}  // namespace
}  // namespace sluice::eval
