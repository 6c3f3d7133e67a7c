#include "device/cuda/cuda_calls.h"

namespace sluice::device {

CudaCalls::CudaCalls(CudaApi& api, int index, Health& health)
    : api_(api), index_(index), health_(health), name_("cuda:" + std::to_string(index)) {}

void CudaCalls::find() {
  int gpus = 0;
  if (const CudaCode code = api_.count(gpus); code != 0) {
    const std::string text = api_.text(code);
    api_.last_error();
    throw Error(ErrorKind::kNotFound, "CUDA finds no GPU")
        .in(name_)
        .found(text)
        .fix("install the driver of the GPU, or compute without one");
  }
  if (index_ < 0 || index_ >= gpus)
    throw Error(ErrorKind::kNotFound, "there is no such GPU")
        .in(name_)
        .expected(gpus == 0 ? "a GPU" : "0 to " + std::to_string(gpus - 1))
        .found(std::to_string(gpus) + (gpus == 1 ? " GPU" : " GPUs"));
}

void CudaCalls::open() {
  find();
  check(api_.use(index_), "the GPU cannot be used");
}

void CudaCalls::admit_this_thread() {
  const CudaCode code = api_.use(index_);
  if (code != 0) lose(api_.text(code));
}

void CudaCalls::lose(const std::string& why) {
  api_.last_error();
  health_.lose(Error(ErrorKind::kIo, "the device does not answer any more")
                   .in(name_)
                   .found(why)
                   .fix("start again; the log of the system may say what happened to the GPU"));
}

Error CudaCalls::error(CudaCode code, std::string_view what) {
  const std::string text = api_.text(code);
  api_.last_error();  // so that a later call does not find it
  if (std::optional<Error> lost = health_.lost()) return *lost;
  Bytes free = 0, total = 0;
  if (api_.memory(free, total) == 0) return Error(ErrorKind::kIo, what).in(name_).found(text);
  lose(text);
  return *health_.lost();
}

void CudaCalls::drain(CudaQueue queue) {
  const CudaCode code = api_.drain(queue);
  if (code == 0) return;
  if (!health_.is_lost()) lose(api_.text(code));
}

CudaApi& cuda_api_or(CudaApi* given) {
  if (given == nullptr) given = cuda_api();
  if (given != nullptr) return *given;
  throw Error(ErrorKind::kUnsupported, "this program was built without CUDA")
      .fix("configure with -DSLUICE_CUDA=ON");
}

}  // namespace sluice::device
