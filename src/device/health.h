// Whether a device still answers.
#pragma once

#include <mutex>
#include <optional>

#include "base/error.h"

namespace sluice::device {

// A device that is lost stays lost: all that is under way and all that comes fails with the same error.
// Thread-safe.
class Health {
 public:
  void lose(const Error& error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = error;
  }
  bool is_lost() const {
    const std::lock_guard lock(mutex_);
    return error_.has_value();
  }
  std::optional<Error> lost() const {
    const std::lock_guard lock(mutex_);
    return error_;
  }

 private:
  mutable std::mutex mutex_;  // protects error_
  std::optional<Error> error_;
};

}  // namespace sluice::device
