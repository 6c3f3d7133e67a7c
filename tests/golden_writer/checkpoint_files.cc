#include "golden_writer/checkpoint_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json/json.h"
#include "golden_writer/weights_list.h"

namespace sluice::golden {
namespace {

namespace fs = std::filesystem;

constexpr const char* kList = "weights.json";
constexpr const char* kIndex = "model.safetensors.index.json";

void write_file(const std::string& path, std::string_view content) {
  std::ofstream file(path, std::ios::binary);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  file.close();
  if (!file) throw Error(ErrorKind::kIo, "the file cannot be written").in(path);
}

// u64 length | JSON, padded with blanks to a multiple of 8 | data (store/source/safetensors.h).
std::string safetensors(std::vector<ListedTensor> tensors, std::uint64_t seed) {
  std::ranges::sort(tensors, [](const ListedTensor& a, const ListedTensor& b) {
    const std::size_t a_bytes = dtype_bytes(a.dtype), b_bytes = dtype_bytes(b.dtype);
    return a_bytes != b_bytes ? a_bytes > b_bytes : a.name < b.name;
  });
  std::string json = R"({"__metadata__":{"format":"pt"})", data;
  for (const ListedTensor& tensor : tensors) {
    const std::size_t begin = data.size();
    data += stored_bytes(tensor, seed);
    json += fmt::format(R"(,"{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", tensor.name,
                        dtype_name(tensor.dtype), fmt::join(tensor.shape, ","), begin, data.size());
  }
  json += '}';
  json.resize((json.size() + 7) / 8 * 8, ' ');
  std::string head;
  for (int shift = 0; shift < 64; shift += 8) head.push_back(static_cast<char>(json.size() >> shift & 0xff));
  return head + json + data;
}

// File name -> its tensors.
std::map<std::string, std::vector<ListedTensor>> shards_of(const WeightsList& list,
                                                           const std::string& source) {
  const std::string path = source + "/" + kIndex;
  if (!fs::exists(path)) return {{"model.safetensors", list.tensors}};
  const Json index = read_json_file(path);
  const JsonObject files = JsonObject(index, path).object("weight_map");
  std::map<std::string, std::vector<ListedTensor>> shards;
  for (const ListedTensor& tensor : list.tensors) shards[files.string(tensor.name)].push_back(tensor);
  if (files.value().size() != list.tensors.size()) {
    throw Error(ErrorKind::kInvalid, "the index names tensors that the list does not have")
        .in(path)
        .expected(fmt::format("the {} tensors of {}", list.tensors.size(), kList))
        .found(fmt::format("{} tensors", files.value().size()))
        .fix("make both again (tools/oracle/README.md)");
  }
  return shards;
}

}  // namespace

void write_checkpoint(const std::string& source, const std::string& directory) {
  const WeightsList list = read_weights_list(source + "/" + kList);
  fs::create_directories(directory);
  for (const auto& entry : fs::directory_iterator(source)) {
    const fs::path name = entry.path().filename();
    if (name.extension() == ".json" && name != kList) fs::copy_file(entry.path(), directory / name);
  }
  for (const auto& [file, tensors] : shards_of(list, source))
    write_file(directory + "/" + file, safetensors(tensors, list.seed));
}

}  // namespace sluice::golden
