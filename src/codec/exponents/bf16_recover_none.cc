#include "base/error.h"
#include "codec/exponents/bf16_recover.h"

namespace sluice::codec {
namespace {

[[noreturn]] void unsupported() {
  throw Error(ErrorKind::kUnsupported, "this program was built without CUDA")
      .fix("configure with -DSLUICE_CUDA=ON");
}

}  // namespace

void recover_bf16_on_device(const std::byte*, const std::byte*, std::size_t, std::byte*) { unsupported(); }
void queue_bf16_recovery(void*, const std::byte*, const std::byte*, std::size_t, std::byte*) {
  unsupported();
}
void copy_on_device(const std::byte*, std::size_t, std::byte*) { unsupported(); }

}  // namespace sluice::codec
