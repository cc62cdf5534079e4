class A
{
  int a;
  long b;
  int c;
}
