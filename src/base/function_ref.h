// A reference to a function: like std::function, but without ownership, for arguments that are only called.
// Copies nothing and allocates nothing.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace sluice {

template <class Signature>
class FunctionRef;

// The callable is an object (a lambda, not a function) and must outlive the reference. Trivially copyable.
template <class Result, class... Arguments>
class FunctionRef<Result(Arguments...)> {
 public:
  template <class Callable,
            class = std::enable_if_t<!std::is_same_v<std::remove_cvref_t<Callable>, FunctionRef> &&
                                     std::is_invocable_r_v<Result, Callable&, Arguments...>>>
  FunctionRef(Callable&& callable)  // NOLINT(google-explicit-constructor): stands in for the callable
      : callable_(const_cast<void*>(static_cast<const void*>(std::addressof(callable)))),
        call_([](void* callable, Arguments... arguments) -> Result {
          return (*static_cast<std::remove_reference_t<Callable>*>(callable))(
              std::forward<Arguments>(arguments)...);
        }) {}

  Result operator()(Arguments... arguments) const {
    return call_(callable_, std::forward<Arguments>(arguments)...);
  }

 private:
  void* callable_;
  Result (*call_)(void*, Arguments...);
};

}  // namespace sluice
