// Calls of CUDA for one GPU: what fails is an Error, and it is found out whether the GPU still answers.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "device/cuda/cuda_api.h"
#include "device/health.h"

namespace sluice::device {

// References must outlive it. Thread-safe.
class CudaCalls {
 public:
  CudaCalls(CudaApi& api, int index, Health& health);

  CudaApi& api() const { return api_; }
  int index() const { return index_; }
  const std::string& name() const { return name_; }  // "cuda:0"
  void find();  // Error(kNotFound) if there is no such GPU; makes no context
  void open();  // find(), and has this thread use the GPU
  // What follows on this thread is for the GPU. False if CUDA refuses.
  bool use() { return api_.use(index_) == 0; }
  void admit_this_thread();  // use(), of a thread without which the device is lost
  // `what` could not be done, as the code says; after a call that failed. Asks the GPU something simple: if
  // that fails, too, it is lost, and the Error says so.
  Error error(CudaCode code, std::string_view what);
  void check(CudaCode code, std::string_view what) {
    if (code != 0) throw error(code, what);
  }
  // Returns when nothing that is queued runs any more: a GPU that cannot say so is lost.
  void drain(CudaQueue queue);

 private:
  void lose(const std::string& why);

  CudaApi& api_;
  const int index_;
  Health& health_;
  const std::string name_;
};

// The given one, or the runtime's: Error(kUnsupported) in a build without CUDA.
CudaApi& cuda_api_or(CudaApi* given);

}  // namespace sluice::device
