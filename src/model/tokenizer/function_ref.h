// A callable passed down the stack: two pointers, no allocation. The callable must outlive the call it is
// passed to.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace sluice::model {

template <class Signature>
class FunctionRef;

template <class Result, class... Args>
class FunctionRef<Result(Args...)> {
 public:
  template <class Callable>
  requires(!std::is_same_v<std::remove_cvref_t<Callable>, FunctionRef>)
      FunctionRef(Callable&& callable)  // NOLINT: implicit, as a function parameter must be
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(callable)))),
        call_([](void* object, Args... args) -> Result {
          return (*static_cast<std::remove_reference_t<Callable>*>(object))(std::forward<Args>(args)...);
        }) {}

  Result operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

 private:
  void* object_;  // non-owning
  Result (*call_)(void*, Args...);
};

}  // namespace sluice::model
