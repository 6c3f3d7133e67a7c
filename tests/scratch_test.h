// A test with a directory of its own.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/files/scratch_directory.h"

namespace sluice::testing {

class ScratchTest : public ::testing::Test {
 protected:
  std::string file(const std::string& name) const { return directory_.file(name); }

  ScratchDirectory directory_;
};

}  // namespace sluice::testing
