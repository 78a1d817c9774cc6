// Owns: NVRTC's functions over the machine's C++ compiler. A "cubin" is the path of a shared object.
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>

namespace {

struct Program {
  std::string text, log, path;
};

std::string folder() { return std::getenv("EMULATED_FOLDER"); }

// The text and, per kernel, how the driver calls it and whether its threads work alone.
std::string with_calls(const std::string& text) {
  std::string made = text;
  const std::string start = "extern \"C\" __global__";
  for (size_t at = text.find(start); at != std::string::npos;) {
    const size_t next = text.find(start, at + 1), name = text.find(") gl_", at) + 2;
    const std::string kernel = text.substr(name, text.find('(', name) - name), body = text.substr(at, next - at);
    const bool together = body.find("gl_across<") != std::string::npos || body.find("gl_block_join<") != std::string::npos ||
                          body.find("gl_down_columns<") != std::string::npos;
    made += "extern \"C\" void " + kernel + "_call(void** arguments) { emulated_call(" + kernel + ", arguments); }\n";
    made += "extern \"C\" int " + kernel + "_together; int " + kernel + "_together = " + (together ? "1" : "0") + ";\n";
    at = next;
  }
  return made;
}

std::string content(const std::string& path) {
  std::ifstream file(path);
  std::stringstream all;
  all << file.rdbuf();
  return all.str();
}

}  // namespace

extern "C" {

int nvrtcVersion(int* major, int* minor) {
  *major = 0;
  *minor = 1;
  return 0;
}
int nvrtcGetNumSupportedArchs(int* count) {
  *count = 1;
  return 0;
}
int nvrtcGetSupportedArchs(int* archs) {
  *archs = 90;
  return 0;
}
int nvrtcCreateProgram(void** program, const char* text, const char*, int, const char* const*, const char* const*) {
  *program = new Program{text, "", ""};
  return 0;
}

int nvrtcCompileProgram(void* handle, int, const char* const*) {
  static std::atomic<int> count = 0;
  auto* program = static_cast<Program*>(handle);
  const std::string text = with_calls(program->text);
  const std::string base = folder() + "/" + std::to_string(std::hash<std::string>()(text));
  program->path = base + ".so";
  if (std::ifstream(program->path).good()) return 0;
  const std::string own = base + "." + std::to_string(getpid()) + "." + std::to_string(count++);
  std::ofstream(own + ".cpp") << text;
  const std::string command =
      std::string(std::getenv("EMULATED_COMPILE")) + " -o " + own + ".so " + own + ".cpp 2> " + own + ".log";
  if (std::system(command.c_str()) != 0) {
    program->log = content(own + ".log");
    return 6;
  }
  return std::rename((own + ".so").c_str(), program->path.c_str());
}

int nvrtcGetProgramLogSize(void* program, size_t* bytes) {
  *bytes = static_cast<Program*>(program)->log.size() + 1;
  return 0;
}
int nvrtcGetProgramLog(void* program, char* log) {
  std::strcpy(log, static_cast<Program*>(program)->log.c_str());
  return 0;
}
int nvrtcGetCUBINSize(void* program, size_t* bytes) {
  *bytes = static_cast<Program*>(program)->path.size() + 1;
  return 0;
}
int nvrtcGetCUBIN(void* program, char* code) {
  std::strcpy(code, static_cast<Program*>(program)->path.c_str());
  return 0;
}
int nvrtcGetPTXSize(void* program, size_t* bytes) { return nvrtcGetCUBINSize(program, bytes); }
int nvrtcGetPTX(void* program, char* code) { return nvrtcGetCUBIN(program, code); }
int nvrtcDestroyProgram(void** program) {
  delete static_cast<Program*>(*program);
  *program = nullptr;
  return 0;
}
}
