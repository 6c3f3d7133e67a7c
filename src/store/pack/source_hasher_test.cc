#include "store/pack/source_hasher.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/files/scratch_directory.h"

namespace sluice::store {
namespace {

// Hashing this file takes half an hour; the test ends since the hasher stops between two steps.
TEST(SourceHasher, StopsWhereAllIsAllowed) {
  constexpr Bytes kSize = Bytes{1} << 40;
  const sluice::testing::ScratchDirectory directory;
  const std::string path = directory.file("sparse");
  std::ofstream(path).close();
  std::error_code error;
  std::filesystem::resize_file(path, kSize, error);
  if (error) GTEST_SKIP() << "THIS FILE SYSTEM HAS NO SPARSE FILE OF 1 TiB: " << error.message();
  SourceHasher hasher({{.path = path, .size = kSize}});
  hasher.allow_all();
  while (hasher.position() == 0) std::this_thread::yield();
  EXPECT_FALSE(hasher.done());
}

}  // namespace
}  // namespace sluice::store
