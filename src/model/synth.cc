#include "model/synth.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <future>
#include <memory>
#include <new>
#include <span>
#include <system_error>

#include "base/error.h"
#include "base/file.h"
#include "base/float16.h"
#include "base/hash.h"
#include "base/json.h"

namespace sluice::model {
namespace {

namespace fs = std::filesystem;

constexpr Bytes kWordBytes = 2;                  // BF16
constexpr Bytes kBatchBytes = 16 * kMiB;         // generated together while the batch before is written
constexpr Bytes kJobBytes = 512 * kKiB;          // of one thread's work
constexpr Bytes kOtherBytes = 64 * kMiB;         // headers, index, file system: what free space must hold besides

std::uint64_t elements_of(const TensorSpec& spec) {
  std::uint64_t n = 1;
  for (std::uint64_t dim : spec.shape) n *= dim;   // tensor_table has checked for overflow
  return n;
}
std::uint64_t columns_of(const TensorSpec& spec) { return spec.shape.back(); }
Bytes bytes_of(const TensorSpec& spec) { return elements_of(spec) * kWordBytes; }

// --- Config -------------------------------------------------------------------------------------------------------

// Sets the first of `keys` that the config has. Error(kInvalid) if it has none.
void replace_count(Json& json, std::initializer_list<const char*> keys, std::uint32_t value, const std::string& path) {
  for (const char* key : keys) {
    if (!json.contains(key)) continue;
    json[key] = value;
    return;
  }
  throw Error(ErrorKind::kInvalid, "the config does not say how many there are, so the number cannot be changed")
      .in(path + ": " + *keys.begin());
}

// True if anything was changed.
bool apply_options(Json& json, const SynthOptions& options, const std::string& path) {
  bool changed = false;
  if (options.layers) {
    replace_count(json, {"num_hidden_layers"}, *options.layers, path);
    if (const auto types = json.find("layer_types"); types != json.end() && types->is_array() && !types->empty()) {
      Json::array_t cycled;
      for (std::uint32_t layer = 0; layer < *options.layers; ++layer) cycled.push_back((*types)[layer % types->size()]);
      *types = std::move(cycled);
    }
    changed = true;
  }
  if (options.experts) {
    replace_count(json, {"num_experts", "n_routed_experts", "num_local_experts"}, *options.experts, path);
    changed = true;
  }
  for (const char* key : {"torch_dtype", "dtype"}) {
    if (!json.contains(key) || json[key] == "bfloat16") continue;
    json[key] = "bfloat16";
    changed = true;
  }
  return changed;
}

// --- Values -------------------------------------------------------------------------------------------------------

// SplitMix64 (Steele, Lea, Flood, 2014).
class Random {
 public:
  explicit Random(std::uint64_t state) : state_(state) {}
  std::uint64_t next() { return mixed(state_ += 0x9e3779b97f4a7c15u); }
  static std::uint64_t mixed(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

 private:
  std::uint64_t state_;
};

// The standard normal quantile of p in (0, 1). Acklam's rational approximation (2003), relative error below 1.2e-9.
double normal_quantile(double p) {
  constexpr double a[] = {-3.969683028665376e+01, 2.209460984245205e+02,  -2.759285104469687e+02,
                          1.383577518672690e+02,  -3.066479806614716e+01, 2.506628277459239e+00};
  constexpr double b[] = {-5.447609879822406e+01, 1.615858368580409e+02, -1.556989798598866e+02, 6.680131188771972e+01,
                          -1.328068155288572e+01};
  constexpr double c[] = {-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00,
                          -2.549732539343734e+00, 4.374664141464968e+00,  2.938163982698783e+00};
  constexpr double d[] = {7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00, 3.754408661907416e+00};
  if (p > 0.5) return -normal_quantile(1 - p);
  if (p < 0.02425) {
    const double q = std::sqrt(-2 * std::log(p));
    return (((((c[0] * q + c[1]) * q + c[2]) * q + c[3]) * q + c[4]) * q + c[5]) /
           ((((d[0] * q + d[1]) * q + d[2]) * q + d[3]) * q + 1);
  }
  const double q = p - 0.5, r = q * q;
  return (((((a[0] * r + a[1]) * r + a[2]) * r + a[3]) * r + a[4]) * r + a[5]) * q /
         (((((b[0] * r + b[1]) * r + b[2]) * r + b[3]) * r + b[4]) * r + 1);
}

// A sample of the weights' distribution at unit deviation: one lookup turns 16 random bits into a weight. Every 500th
// quantile is an outlier.
std::vector<float> make_quantiles() {
  std::vector<float> quantiles(1 << 16);
  for (std::size_t i = 0; i < quantiles.size(); ++i) {
    const double normal = normal_quantile((static_cast<double>(i) + 0.5) / static_cast<double>(quantiles.size()));
    quantiles[i] = static_cast<float>(i % 500 == 250 ? 6 * normal : normal);
  }
  return quantiles;
}

enum class Kind { kWeight, kRouter, kNorm };

Kind kind_of(Role role) {
  switch (role) {
    case Role::kFinalNorm:
    case Role::kInputNorm:
    case Role::kPostAttentionNorm:
    case Role::kQNorm:
    case Role::kKNorm:
    case Role::kQDownNorm:
    case Role::kKvDownNorm:
      return Kind::kNorm;
    case Role::kRouter:
      return Kind::kRouter;
    default:
      return Kind::kWeight;
  }
}

// One tensor's values, row by row; each row has a stream of its own, so that rows can be made in any order.
class TensorValues {
 public:
  TensorValues(const TensorSpec& spec, std::uint64_t seed, std::span<const float> quantiles)
      : quantiles_(quantiles),
        columns_(columns_of(spec)),
        key_(Random::mixed(xxh3(std::as_bytes(std::span(spec.name))) ^ Random::mixed(seed))) {
    switch (kind_of(spec.role)) {
      case Kind::kNorm:
        mean_ = 1.0f;
        break;
      case Kind::kRouter:
        deviation_ = 2.5 / std::sqrt(static_cast<double>(columns_));
        break;
      case Kind::kWeight:
        break;
    }
  }

  void fill_row(std::uint64_t row, std::uint16_t* out) const {
    Random random(Random::mixed(key_ + row));
    const double of_row = normal_quantile((static_cast<double>(random.next() >> 11) + 0.5) * 0x1p-53);
    const float scale = static_cast<float>(mean_ == 0.0f ? deviation_ * std::exp(0.25 * of_row) : deviation_);
    const float* quantiles = quantiles_.data();
    const float mean = mean_;
    std::uint64_t i = 0;
    for (; i + 4 <= columns_; i += 4) {
      const std::uint64_t bits = random.next();
      out[i] = float_to_bf16(mean + scale * quantiles[bits & 0xffff]);
      out[i + 1] = float_to_bf16(mean + scale * quantiles[bits >> 16 & 0xffff]);
      out[i + 2] = float_to_bf16(mean + scale * quantiles[bits >> 32 & 0xffff]);
      out[i + 3] = float_to_bf16(mean + scale * quantiles[bits >> 48]);
    }
    for (std::uint64_t bits = random.next(); i < columns_; ++i, bits >>= 16) {
      out[i] = float_to_bf16(mean + scale * quantiles[bits & 0xffff]);
    }
  }

 private:
  std::span<const float> quantiles_;
  std::uint64_t columns_;
  std::uint64_t key_;
  double deviation_ = 0.02;
  float mean_ = 0.0f;
};

// --- Files --------------------------------------------------------------------------------------------------------

// u64 length | JSON, padded with blanks to a multiple of 8 | data (store/safetensors.h).
std::string safetensors_head(std::span<const TensorSpec> tensors) {
  Json header = {{"__metadata__", {{"format", "pt"}}}};
  Bytes offset = 0;
  for (const TensorSpec& spec : tensors) {
    header[spec.name] = {
        {"dtype", "BF16"}, {"shape", spec.shape}, {"data_offsets", {offset, offset + bytes_of(spec)}}};
    offset += bytes_of(spec);
  }
  const std::string json = header.dump();
  const std::uint64_t length = round_up(json.size(), 8);
  std::string head;
  for (int shift = 0; shift < 64; shift += 8) head.push_back(static_cast<char>(length >> shift & 0xff));
  head += json;
  head.resize(8 + length, ' ');
  return head;
}

std::string index_json(const SynthPlan& plan) {
  Json weight_map = Json::object();
  for (const SynthShard& shard : plan.shards) {
    for (std::size_t i = shard.first; i < shard.first + shard.count; ++i) weight_map[plan.tensors[i].name] = shard.file;
  }
  return Json{{"metadata", {{"total_size", plan.bytes}}}, {"weight_map", std::move(weight_map)}}.dump(2) + "\n";
}

// A directory that is removed with all it holds unless it was published under its final name.
class TemporaryDirectory {
 public:
  explicit TemporaryDirectory(const std::string& final_path)
      : final_path_(final_path), path_(fmt::format("{}.partial-{}", final_path, ::getpid())) {
    std::error_code error;
    if (!fs::create_directory(path_, error)) {
      throw error ? io_error("mkdir", path_, error.value())
                  : Error(ErrorKind::kInvalid, "left behind by an earlier run").in(path_).fix("remove it");
    }
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    if (!published_) fs::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  std::string file(const std::string& name) const { return path_ + "/" + name; }
  void publish() {
    sync_directory(path_);
    rename_no_replace(path_, final_path_);
    published_ = true;
    sync_directory(parent_of(final_path_));
  }
  static std::string parent_of(const std::string& path) {
    const std::string parent = fs::path(path).parent_path().string();
    return parent.empty() ? "." : parent;
  }

 private:
  std::string final_path_, path_;
  bool published_ = false;
};

// A new file that is written from start to end past the page cache: a checkpoint is larger than what fits there, and
// writing it back would cost more CPU time than making it. File systems without O_DIRECT get plain writes.
class ShardFile {
 public:
  explicit ShardFile(const std::string& path) : path_(path) {
    constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
    fd_ = ::open(path.c_str(), kFlags | O_DIRECT, 0666);
    if (fd_ < 0 && errno == EINVAL) fd_ = ::open(path.c_str(), kFlags & ~O_EXCL, 0666);  // the first try may leave it
    if (fd_ < 0) throw io_error("open", path, errno);
  }
  ~ShardFile() { ::close(fd_); }
  ShardFile(const ShardFile&) = delete;
  ShardFile& operator=(const ShardFile&) = delete;

  // Address and size are multiples of kBlockBytes.
  void write(std::span<const std::byte> data) {
    while (!data.empty()) {
      const ssize_t written = ::pwrite(fd_, data.data(), data.size(), static_cast<off_t>(size_));
      if (written < 0) {
        if (errno == EINTR) continue;
        if (errno == EINVAL && leave_direct()) continue;
        throw io_error("write", path_, errno).in(path_, size_);
      }
      size_ += static_cast<Bytes>(written);
      data = data.subspan(static_cast<std::size_t>(written));
      if (size_ % kBlockBytes != 0) leave_direct();  // a short write that ends within a block
    }
  }
  // Cuts the padding of the last block off and waits for the disk.
  void finish(Bytes size) {
    if (::ftruncate(fd_, static_cast<off_t>(size)) != 0) throw io_error("ftruncate", path_, errno);
    if (::fsync(fd_) != 0) throw io_error("fsync", path_, errno);
  }

 private:
  bool leave_direct() {
    const int flags = ::fcntl(fd_, F_GETFL);
    return flags != -1 && (flags & O_DIRECT) != 0 && ::fcntl(fd_, F_SETFL, flags & ~O_DIRECT) == 0;
  }

  std::string path_;
  int fd_ = -1;
  Bytes size_ = 0;
};

// Bytes at an address that is a multiple of kBlockBytes.
class BlockBuffer {
 public:
  // Keeps the first `used` bytes.
  void grow(Bytes size, Bytes used) {
    if (size <= size_) return;
    size = round_up(size, kBlockBytes);
    std::unique_ptr<std::byte, Free> larger(static_cast<std::byte*>(std::aligned_alloc(kBlockBytes, size)));
    if (larger == nullptr) throw std::bad_alloc();
    if (used > 0) std::memcpy(larger.get(), data_.get(), used);
    data_ = std::move(larger);
    size_ = size;
  }
  std::byte* data() const { return data_.get(); }

 private:
  struct Free {
    void operator()(std::byte* data) const { std::free(data); }
  };
  std::unique_ptr<std::byte, Free> data_;
  Bytes size_ = 0;
};

// Rows of one tensor that one thread makes, at byte `begin` of the batch.
struct Job {
  const TensorValues* values;
  std::uint64_t first_row, rows, columns;
  Bytes begin;
};

// Makes batches on all threads while a thread of its own writes the batch before.
class ShardWriter {
 public:
  ShardWriter(const std::string& path, std::string_view head, ThreadPool& threads) : file_(path), threads_(threads) {
    buffers_[0].grow(head.size(), 0);
    std::memcpy(buffers_[0].data(), head.data(), head.size());
    filled_ = used_ = head.size();
  }
  ~ShardWriter() {
    if (writing_.valid()) writing_.wait();       // it uses a buffer
  }

  void add(const TensorValues& values, std::uint64_t first_row, std::uint64_t rows, std::uint64_t columns) {
    const Bytes bytes = rows * columns * kWordBytes;
    buffers_[turn_].grow(std::max(used_ + bytes, kBatchBytes + kJobBytes), filled_);
    jobs_.push_back({&values, first_row, rows, columns, used_});
    used_ += bytes;
  }
  bool full() const { return used_ >= kBatchBytes; }
  void flush() {
    make();
    wait();
    // Whole blocks only; the rest opens the next batch.
    const Bytes whole = round_down(used_, kBlockBytes), rest = used_ - whole;
    BlockBuffer& next = buffers_[1 - turn_];
    next.grow(kBlockBytes, 0);
    std::memcpy(next.data(), buffers_[turn_].data() + whole, rest);
    writing_ = std::async(std::launch::async, [this, data = std::span<const std::byte>(buffers_[turn_].data(), whole)] {
      file_.write(data);
    });
    written_ += whole;
    filled_ = used_ = rest;
    turn_ = 1 - turn_;
  }
  void finish() {
    make();
    wait();
    const Bytes padded = round_up(used_, kBlockBytes);
    buffers_[turn_].grow(padded, used_);
    std::memset(buffers_[turn_].data() + used_, 0, padded - used_);
    file_.write({buffers_[turn_].data(), padded});
    file_.finish(written_ + used_);
  }

 private:
  void make() {
    threads_.parallel_for(jobs_.size(), [&](std::size_t i) {
      const Job& job = jobs_[i];
      auto* words = reinterpret_cast<std::uint16_t*>(buffers_[turn_].data() + job.begin);  // heads are a multiple of 8
      for (std::uint64_t r = 0; r < job.rows; ++r) job.values->fill_row(job.first_row + r, words + r * job.columns);
    });
    jobs_.clear();
  }
  void wait() {
    if (writing_.valid()) writing_.get();
  }

  ShardFile file_;
  ThreadPool& threads_;
  std::vector<Job> jobs_;
  BlockBuffer buffers_[2];
  int turn_ = 0;
  Bytes used_ = 0;                               // of buffers_[turn_], jobs that are still to be made included
  Bytes filled_ = 0;                             // of these, what was there before the jobs
  Bytes written_ = 0;
  std::future<void> writing_;
};

static_assert(std::endian::native == std::endian::little, "safetensors are little-endian");

void check_target(const SynthPlan& plan, const std::string& directory) {
  std::error_code error;
  if (fs::exists(fs::symlink_status(directory, error))) {
    throw Error(ErrorKind::kInvalid, "already exists").in(directory).fix("remove it or choose another name");
  }
  const Bytes free = free_space(TemporaryDirectory::parent_of(directory)), needed = plan.bytes + kOtherBytes;
  if (free < needed) {
    throw Error(ErrorKind::kIo, "not enough free disk space")
        .in(TemporaryDirectory::parent_of(directory))
        .expected(format_bytes(needed))
        .found(format_bytes(free))
        .fix("free some, or make the model smaller with --layers or --experts");
  }
}

}  // namespace

SynthPlan plan_synth(const std::string& config_path, const SynthOptions& options) {
  SynthPlan plan;
  plan.seed = options.seed;
  plan.config_json = read_text_file(config_path, JsonLimits().max_bytes);
  Json json = parse_json(plan.config_json, config_path);
  if (json.is_object() && apply_options(json, options, config_path)) plan.config_json = json.dump(2) + "\n";
  plan.tensors = tensor_table(parse_config(json, config_path));

  const Bytes shard_bytes = std::max<Bytes>(options.shard_bytes, 1);
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    const Bytes bytes = bytes_of(plan.tensors[i]);
    const bool fits = !plan.shards.empty() && bytes <= shard_bytes && plan.shards.back().bytes <= shard_bytes - bytes;
    if (!fits) plan.shards.push_back({.file = "", .first = i});
    ++plan.shards.back().count;
    plan.shards.back().bytes += bytes;
    plan.bytes += bytes;
  }
  for (std::size_t i = 0; i < plan.shards.size(); ++i) {
    plan.shards[i].file = fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, plan.shards.size());
  }
  return plan;
}

void write_synth(const SynthPlan& plan, const std::string& directory, ThreadPool& threads,
                 const std::function<bool(Bytes)>& go_on) {
  std::string path = directory;
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  check_target(plan, path);
  TemporaryDirectory temporary(path);
  const std::vector<float> quantiles = make_quantiles();
  Bytes done = 0;
  for (const SynthShard& shard : plan.shards) {
    const std::span<const TensorSpec> tensors = std::span(plan.tensors).subspan(shard.first, shard.count);
    std::vector<TensorValues> values;
    values.reserve(tensors.size());
    for (const TensorSpec& spec : tensors) values.emplace_back(spec, plan.seed, quantiles);
    ShardWriter writer(temporary.file(shard.file), safetensors_head(tensors), threads);
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      const std::uint64_t columns = columns_of(tensors[t]), rows = elements_of(tensors[t]) / columns;
      const std::uint64_t rows_per_job = std::max<std::uint64_t>(1, kJobBytes / kWordBytes / columns);
      for (std::uint64_t row = 0; row < rows; row += rows_per_job) {
        const std::uint64_t count = std::min(rows_per_job, rows - row);
        writer.add(values[t], row, count, columns);
        done += count * columns * kWordBytes;
        if (!writer.full()) continue;
        writer.flush();
        if (!go_on(done)) throw Error(ErrorKind::kInterrupted, "interrupted; nothing was kept").in(path);
      }
    }
    writer.finish();
  }
  write_file_atomically(temporary.file("model.safetensors.index.json"), index_json(plan));
  write_file_atomically(temporary.file("config.json"), plan.config_json);
  temporary.publish();
  go_on(done);
}

}  // namespace sluice::model
