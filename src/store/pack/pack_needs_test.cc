#include "store/pack/pack_needs.h"

#include <gtest/gtest.h>

#include "store/format.h"
#include "store/pack/testing.h"

namespace sluice::store {
namespace {

using namespace testing;  // NOLINT: the helpers of testing.h

// The bytes that the pieces and files of a store have, without padding between them.
double stored_bytes(const std::string& store) {
  const std::string path = store + "/" + std::string(kManifestName);
  const Manifest manifest = parse_manifest(read_file(path), path);
  Bytes bytes = 0;
  for (const PieceEntry& piece : manifest.pieces) bytes += piece.bytes.length;
  for (const StoredChunk& chunk : manifest.chunks) bytes += chunk.bytes.length;
  for (const StoredSource& source : manifest.sources) bytes += source.weights ? 0 : source.size;
  return static_cast<double>(bytes);
}

// Matrices of 20 × 24 are padded in slices, and codes of 8 bits have scales.
TEST(PackSpace, IsWhatTheFormatsOfPiecesTake) {
  const TempDirectory temp;
  const TinyModel model;
  write_tiny_model(temp / "model", model);
  const PackPlan plan = tiny_plan(model);
  int number = 0;
  for (const bool sliced : {false, true}) {
    for (const DenseRounding dense : {DenseRounding::kExact, DenseRounding::kInt8}) {
      if (!sliced && dense == DenseRounding::kInt8) continue;
      PackOptions options = tiny_options("none");
      if (sliced) options.slices = codec::SliceBits{6, 3};
      options.dense = dense;
      const std::string store = temp / ("x" + std::to_string(++number) + ".sluice");
      pack(temp / "model", store, plan, options);
      const PackJob job(temp / "model", plan, options);
      EXPECT_EQ(least_space(job, job.manifest, 0), static_cast<Bytes>(stored_bytes(store) * 1.1)) << number;
    }
  }
}

}  // namespace
}  // namespace sluice::store
