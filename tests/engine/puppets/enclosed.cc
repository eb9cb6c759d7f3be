// A library that throws and catches with an unwinder of its own, linked into it.
#include <stdexcept>

extern "C" __attribute__((noinline, noipa)) long throw_deep(long depth) {
  if (depth == 0) throw std::runtime_error("deep");
  return 1 + throw_deep(depth - 1);
}

extern "C" __attribute__((noinline, noipa)) long catch_one(long depth) {
  try {
    return throw_deep(depth);
  } catch (const std::exception&) {
    return -7;
  }
}
