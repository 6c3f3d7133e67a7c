// Shared by tests that run the built program on a packed store of the bundled model.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "base/files/scratch_directory.h"
#include "bundled_model.h"

namespace sluice::program {

// A directory that the tests of a suite share, with a store of the bundled model in it. The tests leave the
// store as it is; they make what they change beside it.
class PackedModelTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_.emplace();
    ASSERT_EQ(run("pack " + kModel + " -o " + store() + " --quiet").code, 0);
  }
  static void TearDownTestSuite() { directory_.reset(); }
  static std::string store() { return directory_->file("fable.sluice"); }
  static std::string directory() { return directory_->path(); }
  static std::string file(const std::string& name) { return directory_->file(name); }

 private:
  static inline std::optional<sluice::testing::ScratchDirectory> directory_;
};

}  // namespace sluice::program
