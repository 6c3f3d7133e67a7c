// What an Error says, for tests. Production code does not include this header.
#pragma once

#include <functional>
#include <string>

#include "base/error.h"

namespace sluice::testing {

// The message of the Error that `work` throws; "no error" if it returns.
inline std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace sluice::testing
