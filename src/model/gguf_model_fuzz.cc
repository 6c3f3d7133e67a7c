// Reads any bytes as the head of a model in a GGUF file, whose weights are zeros: either an Error, or a model
// whose experts lie in the file.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/error.h"
#include "model/architecture.h"
#include "store/source/gguf_checkpoint.h"

namespace {
constexpr std::size_t kWeights =
    1 << 20;  // bytes, more than the models of the corpus have; they take no place
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sluice;         // NOLINT
  using namespace sluice::model;  // NOLINT
  static const int memory = ::memfd_create("input", 0);
  const std::size_t file = size + kWeights;
  SLUICE_CHECK(memory >= 0 && ::ftruncate(memory, 0) == 0 &&
               ::pwrite(memory, data, size, 0) == static_cast<ssize_t>(size) &&
               ::ftruncate(memory, static_cast<off_t>(file)) == 0);
  try {
    const auto checkpoint = store::open_gguf("/proc/self/fd/" + std::to_string(memory));
    const Model model = describe_model(*checkpoint);
    for (const ExpertPieces& expert : model.experts)
      for (const store::Piece& piece : expert.all()) {
        const store::Extent place = checkpoint->locate(piece).first();
        SLUICE_CHECK(place.offset <= file && place.length <= file - place.offset, piece.tensor);
      }
  } catch (const Error&) {
  }
  return 0;
}
