// Linked with the library: calls it once with 100.
unsigned long plugin_work(unsigned long number);

int main(void) { return plugin_work(100) == 2 ? 0 : 1; }
