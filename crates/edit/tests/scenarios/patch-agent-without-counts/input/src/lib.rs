fn a() {

    one();
}
