#include "device/cuda/cuda_mover.h"

#include <utility>

namespace sluice::device {

void CudaMover::start(const LinkChunk& chunk) {
  Direction& way = direction(chunk.back);
  const Access access(gate_);
  std::byte* const on_gpu = access.data(chunk.on_unit, chunk.bytes);
  UnderWay copy{way.under_way.empty() ? way.marks.put(way.queue.get()) : nullptr, nullptr};
  const CudaCode code =
      chunk.back ? calls_.api().copy(chunk.to, on_gpu, chunk.bytes, CudaWay::kFromDevice, way.queue.get())
                 : calls_.api().copy(on_gpu, chunk.from, chunk.bytes, CudaWay::kToDevice, way.queue.get());
  if (code != 0) {
    if (copy.begin != nullptr) way.marks.give(copy.begin);
    throw calls_.error(code, "a copy over the link failed");
  }
  try {
    copy.end = way.marks.put_shared(way.queue.get());
  } catch (const Error&) {
    calls_.drain(way.queue.get());  // nobody could wait for it
    if (copy.begin != nullptr) way.marks.give(copy.begin);
    throw;
  }
  way.under_way.push_back(copy);
}

std::optional<double> CudaMover::finish(bool back) {
  Direction& way = direction(back);
  const UnderWay copy = way.under_way.front();
  way.under_way.pop_front();
  const CudaCode code = calls_.api().await(copy.end.get());
  const std::shared_ptr<void> before = std::exchange(way.last_end, copy.end);
  const CudaMark begin = copy.begin != nullptr ? copy.begin : before.get();
  double seconds = 0;
  std::optional<double> took;
  if (code == 0) {
    if (const CudaCode timing = calls_.api().seconds(begin, copy.end.get(), seconds); timing == 0)
      took = seconds;
    else
      calls_.error(timing, "the GPU does not say how long a copy took");  // the copy is there
  } else {
    calls_.drain(way.queue.get());
  }
  if (copy.begin != nullptr) way.marks.give(copy.begin);
  calls_.check(code, "a copy over the link failed");
  return took;
}

}  // namespace sluice::device
