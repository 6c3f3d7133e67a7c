// Reads any bytes as a model in a GGUF file: either an Error, or a model whose experts lie in the file.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/error.h"
#include "model/architecture.h"
#include "store/source/gguf_checkpoint.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sluice;         // NOLINT
  using namespace sluice::model;  // NOLINT
  static const int memory = ::memfd_create("input", 0);
  SLUICE_CHECK(memory >= 0 && ::ftruncate(memory, 0) == 0 &&
               ::pwrite(memory, data, size, 0) == static_cast<ssize_t>(size));
  try {
    const auto checkpoint = store::open_gguf("/proc/self/fd/" + std::to_string(memory));
    const Model model = describe_model(*checkpoint);
    for (const ExpertPieces& expert : model.experts)
      for (const store::Piece& piece : expert.all()) {
        const store::Extent place = checkpoint->locate(piece).first();
        SLUICE_CHECK(place.offset <= size && place.length <= size - place.offset, piece.tensor);
      }
  } catch (const Error&) {
  }
  return 0;
}
