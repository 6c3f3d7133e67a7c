// The codecs behind the registry of exponent_codec.h, and the pool of library contexts they share.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "codec/exponents/exponent_codec.h"

namespace sluice::codec {

inline constexpr int kZstdDefaultLevel = 0;  // entropy coding alone: exponents do not repeat
int zstd_min_level();
int zstd_max_level();
std::unique_ptr<const ExponentCodec> make_zstd_codec(int level);

inline constexpr int kLz4DefaultLevel = 4;
int lz4_min_level();
int lz4_max_level();
std::unique_ptr<const ExponentCodec> make_lz4_codec(int level);

std::unique_ptr<const ExponentCodec> make_none_codec(int level);

// Library contexts that several threads use in turn: the pool holds as many as were ever in use at once.
// Thread-safe.
template <class Context, class Make, void (*Free)(Context*)>
class ContextPool {
 public:
  ContextPool() = default;
  ContextPool(const ContextPool&) = delete;
  ContextPool& operator=(const ContextPool&) = delete;
  ~ContextPool() {
    for (Context* context : free_) Free(context);
  }

  // Returns its context to the pool on destruction, also after a failed call: the library starts every call
  // afresh.
  class Lease {
   public:
    Lease(ContextPool& pool, Context* context) : pool_(pool), context_(context) {}
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ~Lease() { pool_.give(context_); }
    Context* get() const { return context_; }

   private:
    ContextPool& pool_;
    Context* context_;
  };

  Lease take() {
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        Context* context = free_.back();
        free_.pop_back();
        return Lease(*this, context);
      }
      free_.reserve(++made_);  // so that give() cannot fail
    }
    return Lease(*this, Make{}());
  }

 private:
  void give(Context* context) {
    const std::lock_guard lock(mutex_);
    free_.push_back(context);
  }

  std::mutex mutex_;  // protects free_ and made_
  std::vector<Context*> free_;
  std::size_t made_ = 0;
};

}  // namespace sluice::codec
