@file:JvmName("Orders")
package com.shop.orders
import kotlin.math.*
const val LIMIT = 10
typealias Handler<T> = (T) -> Unit
/** An order. */
@Serializable
data class Order(val id: Long, val lines: List<Line> = emptyList()) : Base(), Comparable<Order> {
    init { require(id > 0) }
    constructor(s: String) : this(s.toLong())
    val total: Double
        get() = lines.sumOf { it.price }
    var name: String by Delegates.observable("") { _, _, _ -> }
    private lateinit var repo: Repo
    override fun compareTo(other: Order) = id.compareTo(other.id)
    operator fun plus(o: Order): Order = this
    suspend inline fun <reified T> load(crossinline f: (T) -> Unit): T? { return null }
    companion object Factory { @JvmStatic fun create() = Order(1); const val X = 1 }
    inner class Nested { fun inside() {} }
    enum class State(val c: Int) { NEW(1) { override fun f() {} }, PAID(2); abstract fun f() }
}
sealed interface Result<out T> { data class Ok<T>(val v: T) : Result<T>; object Err : Result<Nothing> }
object Registry { private val m = mutableMapOf<String, Int>()
    fun add(k: String) { m[k] = 1 } }
fun interface Mapper { fun map(x: Int): Int }
fun <T> List<T>.second(): T = this[1]
val String.shout: String get() = uppercase()
infix fun Int.pow(e: Int): Int = 1
@Composable
fun Screen(vm: VM = viewModel()) { Column { Text("x") } }
tailrec fun gcd(a: Int, b: Int): Int = if (b == 0) a else gcd(b, a % b)
abstract class Base { abstract fun go(): Int }
value class Id(val v: Long)
annotation class Audited(val name: String)
